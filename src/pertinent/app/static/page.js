// What all scripts of the page share: elements, and the way to the server.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") for (const [rule, to] of Object.entries(value)) element.style.setProperty(rule, to);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export async function ask(path, body, signal) {
  const settings = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal };
  const response = await fetch(path, body === undefined ? {} : settings);
  if (!response.ok) throw new Error(await response.text());
  return response;
}

export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const whole = rest.split("\n\n");
    rest = whole.pop();
    for (const each of whole) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(each);
      yield [name, JSON.parse(data)];
    }
  }
}
