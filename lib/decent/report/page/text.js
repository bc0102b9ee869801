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

// The children of `parent` become these nodes. Nodes that stay are not removed, which would close, scroll or unfocus them.
function arrange(parent, nodes) {
  const stay = new Set(nodes);
  for (const child of [...parent.childNodes]) {
    if (!stay.has(child)) child.remove();
  }
  nodes.forEach((node, i) => { if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i] ?? null); });
}

// Replaces nodes by similar ones. Focus, open state and scroll position carry over by an element's place among its kind.
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

// Four significant digits, with thousands separated; 1.2e-7 if a decimal would be long.
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

// Ticks of an axis: short, and all in one unit and notation.
function tickTexts(values) {
  const sizes = values.map((value) => Math.abs(value ?? 0)).filter((size) => size > 0);
  const largest = Math.max(...sizes), smallest = Math.min(...sizes);
  const [unit, name] = largest >= 1e6 ? [1e6, "M"] : largest >= 1e4 ? [1e3, "k"] : [1, ""];
  return values.map((value) => {
    if (value === null) return "";
    if (value === 0) return "0";
    if (largest >= 1e9 || smallest < 1e-4) return Number(value.toPrecision(3)).toExponential().replace("e+", "e");
    return (value / unit).toLocaleString("en-US", {maximumSignificantDigits: 6}) + name;
  });
}

const counted = (count, one) => `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`;

// ---- parts used in several places ---------------------------------------------------------------

// Curves have ten colours; from the eleventh curve on they are also dashed.
const DASHES = [[], [6, 3], [2, 3], [10, 3, 2, 3]];
const dashOf = (color) => Math.floor(color / 10) % DASHES.length;

function swatchOf(color, style = "line") {
  const swatch = element("span", {class: `swatch ${style} dash${dashOf(color)}`, "aria-hidden": "true"});
  swatch.style.color = `var(--c${color % 10})`;
  return swatch;
}

// A table that scrolls if it is too wide, also by keys. Its caption does not scroll with it.
function scrolling(name, caption, table) {
  const region = element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": name}, table);
  return element("div", {class: "scrolls"}, caption ? element("p", {class: "caption"}, caption) : null, region);
}

// ---- colours ----------------------------------------------------------------------------------

const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

function luminance(color) {
  const [r, g, b] = channels(color).map((value) => value / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

// The colours of a cell that shows a share: the larger, the hotter. The text is black or white, whichever can be read.
function shareColors(share) {
  const [heat, paper] = [paint("--accent"), paint("--paper")].map(channels);
  const mixed = heat.map((value, i) => Math.round(paper[i] + (value - paper[i]) * (0.08 + 0.92 * share)));
  const background = "#" + mixed.map((value) => value.toString(16).padStart(2, "0")).join("");
  const color = [paint("--ink"), paint("--paper"), "#000000", "#ffffff"].find((text) => contrast(text, background) >= 4.5);
  return {background, color};
}
