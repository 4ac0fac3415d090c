for (const place of document.querySelectorAll('[data-origin]')) place.textContent = location.origin;
