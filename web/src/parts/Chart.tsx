import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { mark } from '../past';

export interface Line {
  name: string;
  values: (number | null)[];
  /** Name of a colour of the style sheet. */
  colour: string;
}

interface ChartProps {
  title: string;
  /** Seconds since 1970. */
  times: number[];
  lines: Line[];
  show: (value: number) => string;
}

const HEIGHT = 160;

/** A chart of values over time, with the same in words. */
export function Chart({ title, times, lines, show }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data: uPlot.AlignedData = [times, ...lines.map((line) => line.values)];
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false;
    let observer: ResizeObserver | undefined;
    // the charts are no part of what is loaded before the first view
    void import('uplot').then(({ default: UPlot }) => {
      const own = place.current;
      if (gone || !own) return;
      plot.current = new UPlot(settings(own, lines, show), latest.current, own);
      observer = new ResizeObserver(() => plot.current?.setSize({ width: own.clientWidth, height: HEIGHT }));
      observer.observe(own);
    });
    return () => {
      gone = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(data));
  const words = lines.map((line) => inWords(line, show)).join('; ');
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        {lines.map((line) => (
          <span key={line.name} class="key">
            <i class={`swatch ${line.colour}`} aria-hidden="true" />
            {inWords(line, show)}
          </span>
        ))}
      </figcaption>
      <div ref={place} role="img" aria-label={`${title}: ${words}`} />
    </figure>
  );
}

function inWords(line: Line, show: (value: number) => string): string {
  const known = line.values.filter((value) => value !== null);
  const last = known[known.length - 1];
  if (last === undefined) return `${line.name}: waiting for values`;
  return `${line.name} ${show(last)} (most ${show(Math.max(...known))})`;
}

function settings(place: HTMLElement, lines: Line[], show: (value: number) => string): uPlot.Options {
  // the canvas takes its colours from the style sheet, when it is drawn: they change with light and dark
  const colour = (name: string) => () => {
    const probe = getComputedStyle(document.documentElement);
    const dark = probe.colorScheme === 'dark' || (probe.colorScheme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
    return COLOURS[name]?.[dark ? 1 : 0] ?? '#888';
  };
  const axis = { stroke: colour('text'), grid: { stroke: colour('grid'), width: 1 }, ticks: { show: false } };
  return {
    width: place.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_self, _low, high) => [0, Number.isFinite(high) && high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, space: 70, size: 30, values: (self, splits) => splits.map((time) => (self.data[0].length === 0 ? '' : mark(time, self.data[0]))) },
      { ...axis, size: 74, values: (_self, splits) => splits.map((value) => show(value)) },
    ],
    series: [{}, ...lines.map((line) => ({ label: line.name, stroke: colour(line.colour), width: 2, points: { show: false } }))],
  };
}

/** Light and dark; the same as in the style sheet. */
const COLOURS: { [name: string]: [string, string] } = {
  one: ['#0b5fa5', '#6cb6ff'],
  two: ['#9a4b00', '#f0a35e'],
  three: ['#b3261e', '#ff8a80'],
  text: ['#4a5562', '#a9b4c0'],
  grid: ['#e3e8ee', '#2b343e'],
};
