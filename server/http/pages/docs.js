const darkness = matchMedia('(prefers-color-scheme: dark)');
const followDarkness = () => document.documentElement.classList.toggle('dark-mode', darkness.matches);
darkness.addEventListener('change', followDarkness);
followDarkness();

SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  persistAuthorization: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  docExpansion: 'none',
  filter: true,
});
