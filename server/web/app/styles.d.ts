/** Vite collects the styles; they export nothing. */
declare module '*.css';
