// Hides most of each token, since people share their screens.

const secrets = ["Authorization", "X-Cart-Token"];

/** veiled shortens the value of a header that gives access. */
export function veiled(name, value) {
  if (!secrets.includes(name) || !value) return value;
  const [, scheme, token] = /^(Bearer )?(.*)$/.exec(value);
  return token.length > 12 ? `${scheme ?? ""}${token.slice(0, 6)}…${token.slice(-4)}` : value;
}

/** veiledRequest is a copy of a request without its tokens. */
export function veiledRequest(request) {
  return { ...request, headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, veiled(name, value)])) };
}
