import '../pages/docs.css';
import '../pages/forms.css';
import './app.css';
import { render } from 'preact';
import { followSession } from './account.ts';
import { followLinks } from './address.ts';
import { App } from './app.tsx';
import { followAddress } from './project.ts';

followSession();
followAddress();
followLinks();
const place = document.getElementById('app');
if (place) render(<App />, place);
