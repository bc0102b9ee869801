// Numbers and elements as the page shows them. Text from runs goes in as text, never as markup.

// element("td", {class: "number"}, "1.5"): attributes, then children; null children are left out.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// The children of `parent` become these nodes. Those that stay are not taken out, which would close, scroll or unfocus them.
function arrange(parent, nodes) {
  const stay = new Set(nodes);
  for (const child of [...parent.childNodes]) {
    if (!stay.has(child)) child.remove();
  }
  nodes.forEach((node, i) => { if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i] ?? null); });
}

// New nodes like the old ones: what has the focus, is open or is scrolled stays so, by its place among its like.
function refill(parent, nodes) {
  const all = (what) => [...parent.querySelectorAll(what)];
  const focused = all("a, input, summary, [tabindex]").indexOf(document.activeElement);
  const open = all("details").map((details) => details.open), lefts = all(".scroll").map((scroll) => scroll.scrollLeft);
  parent.replaceChildren(...nodes);
  all("details").forEach((details, i) => { details.open = open[i] ?? false; });
  all(".scroll").forEach((scroll, i) => { scroll.scrollLeft = lefts[i] ?? 0; });
  all("a, input, summary, [tabindex]")[focused]?.focus({preventScroll: true});
}

const byId = (id) => document.getElementById(id);

// Four significant digits, with thousands apart; 1.2e-7 where a decimal would be long.
function numberText(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 2).replace("e+", "e");
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  const decimals = size >= 1000 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size || 1)));
  return value.toLocaleString("en-US", {minimumFractionDigits: Math.min(decimals, 2), maximumFractionDigits: Math.min(decimals, 8)});
}

// All digits, as metrics.jsonl has them.
const exactText = (value) => (value === null || value === undefined ? "–" : String(value));

const percentText = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(2) + " %");

function secondsText(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 10) return numberText(seconds, 3) + " s";
  if (seconds < 120) return seconds.toFixed(1) + " s";
  const whole = Math.round(seconds);
  const pad = (part) => String(part).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)} h` : `${Math.floor(whole / 60)}:${pad(whole % 60)} min`;
}

// Ticks of an axis: short, and alike among themselves.
function tickTexts(values) {
  const largest = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  return values.map((value) => {
    if (value === null) return "";
    if (value === 0) return "0";
    if (largest >= 1e6) return numberText(value / 1e6, 3) + "M";
    if (largest >= 1e4) return numberText(value / 1e3, 3) + "k";
    if (largest < 1e-3 || Math.abs(value) < 1e-4) return Number(value.toPrecision(3)).toExponential();
    return String(Number(value.toPrecision(6)));
  });
}

const counted = (count, one) => `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`;
