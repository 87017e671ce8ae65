import 'uplot/dist/uPlot.min.css';
import './style.css';
// before the first drawing: it looks at everything that is drawn
import './hide';
import { render } from 'preact';
import { App } from './app';

const place = document.getElementById('app');
if (place) {
  place.textContent = '';
  render(<App />, place);
}
