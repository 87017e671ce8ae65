// Serves `dist/` and a sign-in of its own in front of a running `sluice-web`, for work on the pages:
//
//   SLUICE_API=https://127.0.0.1:8443 SLUICE_TOKEN=sluice_... node tests/dev.mjs [PORT]
//
// Any password signs in; the user's name is its role: view, support, operate or configure. It prints a link that signs in as well.
// Requests to /api go on to sluice-web with the token, which decides what may be done. `npx vite build --watch` builds beside it.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { fileURLToPath } from 'node:url';

const api = new URL(process.env.SLUICE_API ?? 'https://127.0.0.1:8443');
const token = process.env.SLUICE_TOKEN ?? '';
const port = Number(process.argv[2] ?? 8080);
const dist = fileURLToPath(new URL('../dist', import.meta.url));
const ROLES = ['view', 'support', 'operate', 'configure'];
const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const HEAD = {
  'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    + "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-cache',
};
const link = randomBytes(16).toString('hex');
const sessions = new Map();

const json = (response, status, body, head = {}) => {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { ...HEAD, 'Content-Type': type, ...head });
  response.end(body === undefined ? undefined : JSON.stringify(body));
};
const refuse = (response, status, detail) => json(response, status, { type: 'about:blank', title: '', status, detail });
const cookie = (request) => /(?:^|; )session=([0-9a-f]+)/.exec(request.headers.cookie ?? '')?.[1];

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString() || '{}');
}

async function signIn(request, response) {
  const told = await body(request);
  const role = told.link === link ? 'configure' : told.password ? told.user : undefined;
  if (!ROLES.includes(role)) return refuse(response, 401, 'The user or the password is wrong.');
  const id = randomBytes(16).toString('hex');
  const me = { name: told.user ?? 'dev', role, expires: Math.floor(Date.now() / 1000) + 3600 };
  sessions.set(id, me);
  return json(response, 200, me, { 'Set-Cookie': `session=${id}; HttpOnly; SameSite=Strict; Path=/` });
}

function forward(request, response) {
  const headers = { ...request.headers, host: api.host, authorization: `Bearer ${token}` };
  delete headers.cookie;
  const options = { method: request.method, headers, rejectUnauthorized: false };
  const onward = https.request(new URL(request.url, api), options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => (response.headersSent ? response.destroy() : refuse(response, 503, 'sluice-web does not answer.')));
  response.on('close', () => onward.destroy());
  request.pipe(onward);
}

async function file(path, response) {
  try {
    const name = path === '/' ? '/index.html' : path;
    if (!/^\/(index\.html|assets\/[\w.-]+)$/.test(name)) throw new Error('no such file');
    const content = await readFile(dist + name);
    response.writeHead(200, { ...HEAD, 'Content-Type': TYPES[name.split('.').pop()] ?? 'application/octet-stream' });
    response.end(content);
  } catch {
    refuse(response, 404, 'There is nothing at this path.');
  }
}

http.createServer((request, response) => {
  const path = request.url.split('?')[0];
  if (!path.startsWith('/api/')) return file(path, response);
  if (path === '/api/v1/sign-in') return signIn(request, response).catch((error) => refuse(response, 400, String(error)));
  const me = sessions.get(cookie(request));
  if (!me) return refuse(response, 401, 'Nobody is signed in.');
  if (path === '/api/v1/me') return json(response, 200, me);
  if (path === '/api/v1/sign-out') {
    sessions.delete(cookie(request));
    return json(response, 204, undefined, { 'Set-Cookie': 'session=; Max-Age=0; Path=/' });
  }
  return forward(request, response);
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/#/sign-in?link=${link}`));
