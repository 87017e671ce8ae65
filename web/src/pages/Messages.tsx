import { useEffect, useState } from 'preact/hooks';
import { url } from '../api';
import { Button, Notice } from '../parts/basics';
import { Table } from '../parts/Table';
import { number, text, type Row } from '../row';
import { useRefusal } from '../session';

/** Seconds that a trace runs, on the page and in a file. */
const PAGE_SECONDS = 600;
const FILE_SECONDS = 60;
/** Messages that are shown. Then the trace ends, so that a page that is left open does not grow. */
const MOST = 500;

/** Who speaks, in the order of the columns of the ladder, and how far these are from each other. */
const ENDS = ['home', 'gateway', 'RADIUS', 'user plane'] as const;
const APART = 60;
/** Between whom messages of a path go: who is outside, and who is the gateway's part. */
const PATHS: { [path: string]: [outside: number, gateway: number] } = { access: [0, 1], radius: [2, 1], pfcp: [3, 1], sample: [0, 3] };

/** The messages between a subscriber and the gateway as they happen, and what they cause at RADIUS servers and user planes. */
export function Messages({ who }: { who: string }) {
  const [running, setRunning] = useState(false);
  const [messages, setMessages] = useState<Row[]>([]);
  const [said, setSaid] = useState('');
  const begin = () => {
    setMessages([]);
    setSaid('');
    setRunning(true);
  };
  const end = (why: string) => {
    setRunning(false);
    setSaid(why);
  };
  useEffect(() => {
    if (!running) return;
    const source = new EventSource(url('trace', { who, seconds: PAGE_SECONDS }));
    source.onmessage = (event: MessageEvent<string>) => {
      const message = JSON.parse(event.data) as Row;
      setMessages((before) => [message, ...before]);
    };
    source.addEventListener('followed', (event: MessageEvent<string>) => setSaid(`Following ${text(JSON.parse(event.data) as Row, 'line')}.`));
    source.addEventListener('ended', (event: MessageEvent<string>) => {
      const ended = JSON.parse(event.data) as Row;
      end(`The trace has ended: ${text(ended, 'why')}. ${number(ended, 'missed') ?? 0} messages were missed.`);
    });
    // the browser would begin a new trace by itself
    source.onerror = () => end('The trace has ended, or was refused: too many may run, or the subscriber may be gone.');
    return () => source.close();
  }, [running, who]);
  useEffect(() => {
    if (running && messages.length >= MOST) end(`${MOST} messages are enough for a page: the command \`sluice trace\` goes on.`);
  }, [running, messages]);
  const first = number(messages[messages.length - 1] ?? {}, 'at_nanoseconds') ?? 0;
  return (
    <section aria-labelledby="messages">
      <h2 id="messages">Messages</h2>
      <div class="actions">
        {running
          ? <Button onClick={() => end('')}>Stop</Button>
          : <Button needs="operate" onClick={begin}>Follow messages</Button>}
        <File who={who} />
      </div>
      {said && <Notice>{said}</Notice>}
      {(running || messages.length > 0) && (
        <Table
          caption="The newest first, seconds since the first one"
          empty="Nothing was said yet."
          rows={messages}
          views={[
            { field: 'at_nanoseconds', label: 'Time', kind: 'number', cell: (row) => seconds(row, first) },
            { field: 'path', label: ENDS.join(' · '), cell: (row) => <Arrow message={row} /> },
            { field: 'says', label: 'Message' },
          ]}
        />
      )}
    </section>
  );
}

function seconds(message: Row, first: number): string {
  return (((number(message, 'at_nanoseconds') ?? 0) - first) / 1e9).toFixed(3);
}

/** A link that downloads what is said within a minute. */
function File({ who }: { who: string }) {
  const refusal = useRefusal('operate');
  if (refusal) return null;
  return <a href={url('trace/file', { who, seconds: FILE_SECONDS })} download>{`Record ${FILE_SECONDS} s for Wireshark`}</a>;
}

/** A message on its way from one to another. */
function Arrow({ message }: { message: Row }) {
  const [outside, gateway] = PATHS[text(message, 'path')] ?? [0, 1];
  const [from, to] = message['sent'] === true ? [gateway, outside] : [outside, gateway];
  const place = (end: number) => 6 + end * APART;
  const tip = to > from ? -6 : 6;
  return (
    <svg class="ladder" viewBox={`0 0 ${place(ENDS.length - 1) + 6} 16`} role="img" aria-label={`${ENDS[from] ?? ''} to ${ENDS[to] ?? ''}`}>
      {ENDS.map((end, index) => <line key={end} class="end" x1={place(index)} y1="0" x2={place(index)} y2="16" />)}
      <line class="way" x1={place(from)} y1="8" x2={place(to)} y2="8" />
      <polygon class="tip" points={`${place(to)},8 ${place(to) + tip},4 ${place(to) + tip},12`} />
    </svg>
  );
}
