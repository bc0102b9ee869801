// One chart: a figure around uPlot. It draws a few points for each pixel, but shows values from the data itself.

const HEIGHT = 230;
// Charts on paper are two in a row, and lower, so that pages are full.
const PRINTED = {width: 340, height: 170, now: false};
const LEAST_AXIS = 54;  // pixels for the numbers beside a chart; long numbers get more
const LEGEND_ITEMS = 8;  // shown until the legend is opened; page.css has the same number
const LEAST_POINTS = 4;  // in view, when zooming in by keys

const seriesPaint = (color) => paint(`--c${color % 10}`);

function faded(color, share) {
  const [r, g, b] = channels(color);
  return `rgba(${r}, ${g}, ${b}, ${share})`;
}

// The first, lowest, highest and last value of each pixel, which give the same picture as all values. Gaps stay.
function thinned(xs, ys, from, to, pixels) {
  const begin = Math.max(0, firstFrom(xs, from) - 1), end = Math.min(xs.length, firstFrom(xs, to) + 2);
  if (end - begin <= 4 * pixels) return [xs.slice(begin, end), ys.slice(begin, end)];
  const picked = [];
  const perPixel = (to - from) / pixels;
  for (let i = begin; i < end;) {
    const border = xs[i] + perPixel;
    const first = i;
    let low = i, high = i, gap = i;
    for (; i < end && (i === first || xs[i] < border); ++i) {
      if (ys[i] === null) gap = i;
      if (ys[low] === null || (ys[i] !== null && ys[i] < ys[low])) low = i;
      if (ys[high] === null || (ys[i] !== null && ys[i] > ys[high])) high = i;
    }
    const wanted = [first, low, high, gap, i - 1].sort((a, b) => a - b);
    wanted.forEach((at, n) => { if (n === 0 || at !== wanted[n - 1]) picked.push(at); });
  }
  return [picked.map((at) => xs[at]), picked.map((at) => ys[at])];
}

// Ticks of a logarithmic scale: powers of ten, not too many; if there are few, also multiples of them.
function logTicks(low, high) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.max(1, Math.ceil((last - first) / 7));
  const ticks = (factors) => Array.from({length: last - first + 1}, (_, i) => first + i).filter((power) => power % every === 0)
    .flatMap((power) => factors.map((factor) => Number(`${factor}e${power}`))).filter((tick) => tick >= low && tick <= high);
  const found = [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]].map(ticks).find((each) => each.length >= 3);
  return found ?? [0, 1, 2, 3].map((part) => Number((low + (high - low) * (part + 0.5) / 4).toPrecision(3)));
}

// Ticks of a linear scale: about five round values.
function evenTicks(low, high) {
  const power = Math.floor(Math.log10((high - low) / 5));
  const step = [1, 2, 5, 10].map((factor) => Number(`${factor}e${power}`)).find((each) => (high - low) / each <= 6);
  const first = Math.ceil(low / step);
  return Array.from({length: Math.floor(high / step) - first + 1}, (_, i) => (first + i) * step);
}

// The width of the longest text. uPlot asks again until nothing changes, so later answers repeat the first.
function axisSize(u, texts, at, cycle, font) {
  if (cycle > 1) return u.axes[at]._size;
  const context = document.createElement("canvas").getContext("2d");
  context.font = font;
  return Math.max(LEAST_AXIS, ...(texts ?? []).map((text) => Math.ceil(context.measureText(text).width) + 10));
}

class Chart {
  // spec: {id, title, unit, note, log, zero, percent, stacked, series: [{name, color, style, run, kind, ys, format}]}; style: line, faint,
  // dots (each point shown) or area (drawn over the one before it).
  constructor(spec, view) {
    Object.assign(this, spec);
    this.view = view;
    this.figure = this.makeFigure();
    this.figure.chart = this;
    new ResizeObserver(() => this.fit()).observe(this.plot);
  }

  makeFigure() {
    const caption = element("h3", {id: `${this.id}-title`}, this.title);
    this.logButton = element("button", {type: "button", "aria-pressed": String(!!this.log), onclick: () => this.toggleLog()}, "log");
    this.logButton.title = "logarithmic scale";
    this.legend = element("ul", {class: "legend"});
    this.more = element("button", {type: "button", class: "more", "aria-expanded": "false", onclick: () => this.openLegend()});
    this.noteText = element("p", {class: "note"});
    this.plot = element("div", {class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart",
                                "aria-labelledby": `${this.id}-title`, "aria-describedby": `${this.id}-says`,
                                onkeydown: (event) => this.key(event)});
    this.says = element("p", {id: `${this.id}-says`, class: "unseen"}, this.summary());
    return element("figure", {id: this.id},
      element("figcaption", {}, caption, element("span", {class: "unit"}, this.unit ?? ""),
              element("span", {class: "tools"}, this.stacked ? null : this.logButton)),
      element("div", {}, this.legend, this.more), this.plot,
      element("div", {}, this.says, this.noteText, this.makeTable()));
  }

  shown() { return this.series.filter((series) => !this.view.hidden.has(series.run)); }

  summary() {
    const parts = this.series.map((series) => {
      const values = series.ys.filter((value) => value !== null);
      if (values.length === 0) return `${series.name}: no values`;
      const least = values.reduce((a, b) => Math.min(a, b)), most = values.reduce((a, b) => Math.max(a, b));
      return `${series.name}: from ${series.format(values[0])} to ${series.format(values.at(-1))}, between ${series.format(least)} and ${series.format(most)}`;
    });
    return parts.join(". ") + ". Arrow keys read values, plus and minus zoom, Escape shows all.";
  }

  // ---- drawing --------------------------------------------------------------------------------

  // Called when the axis, the data or the set of hidden runs has changed.
  reload() {
    this.says.textContent = this.summary();
    for (const series of this.series) series.xs = series.run.axis(series.kind, this.view.axis);
    this.draw();
    this.fillTable();
  }

  // Shows new figures. The scale stays as the reader has chosen it.
  renew(spec) {
    const log = this.logChosen ? this.log : spec.log;
    Object.assign(this, spec, {log});
    this.logButton.setAttribute("aria-pressed", String(!!log));
    return this;
  }

  draw() {
    this.uplot?.destroy();
    this.plot.replaceChildren();
    this.width = PRINTED.now ? PRINTED.width : this.plot.clientWidth;
    if (this.width === 0) return;
    this.findRange();
    this.noteText.textContent = this.noteNow();
    this.uplot = new uPlot(this.options(), this.joined(), this.plot);
    this.readLast();
  }

  fit() {
    if (!PRINTED.now && this.plot.clientWidth !== this.width) this.draw();
  }

  // Called when the part of the x axis in view has changed.
  zoomed() {
    if (!this.uplot) return;
    this.findRange();
    this.uplot.setData(this.joined(), false);
    this.uplot.setScale("x", {min: this.range[0], max: this.range[1]});
    this.readLast();
  }

  noteNow() {
    const lacks = this.log && this.shown().some(({ys}) => ys.some((y) => y !== null && y <= 0));
    return [this.note, lacks ? "Values of 0 and below have no place on a logarithmic scale and are not drawn." : ""].filter(Boolean).join(" ");
  }

  visible(ys) { return this.log ? ys.map((y) => (y > 0 ? y : null)) : ys; }

  joined() {
    const tables = this.shown().map(({xs, ys}) => {
      const [x, y] = thinned(xs, ys, ...this.range, Math.max(50, Math.round(this.width)));
      return [x, this.visible(y)];
    });
    return tables.length ? uPlot.join(tables) : [[]];
  }

  findRange() {
    this.range = this.view.range ?? this.view.all();
    let low = Infinity, high = -Infinity;
    for (const {xs, ys} of this.shown()) {
      const end = firstAfter(xs, this.range[1]);
      for (let i = firstFrom(xs, this.range[0]); i < end; ++i) {
        const y = ys[i];
        if (y === null || (this.log && y <= 0)) continue;
        if (y < low) low = y;
        if (y > high) high = y;
      }
    }
    this.yRange = this.log ? this.logRange(low, high) : this.linearRange(low, high);
  }

  linearRange(low, high) {
    if (low > high) return [0, 1];
    if (this.zero && low >= 0) return [0, high > 0 ? high * 1.06 : 1];
    const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    const bottom = low >= 0 ? Math.max(0, low - room) : low - room;
    // Nothing is above 100 %, so the top leaves only room for the full width of a line there.
    const top = this.percent && high <= 1 ? Math.min(high + room, 1 + 0.015 * (1 - bottom)) : high + room;
    return [bottom, top];
  }

  logRange(low, high) {
    if (low > high) return [0.1, 1];
    const room = Math.max(Math.pow(high / low, 0.05), 1.05);
    return [low / room, high * room];
  }

  options() {
    const ink = paint("--soft"), grid = {stroke: paint("--grid"), width: 1};
    const font = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
    const axis = {stroke: ink, grid: {...grid, filter: (_, ticks) => ticks}, ticks: {show: false}, font};
    return {
      width: this.width, height: PRINTED.now ? PRINTED.height : HEIGHT, padding: [10, 12, 0, 0], legend: {show: false},
      pxAlign: 1,
      scales: {x: {time: false, range: () => this.range}, y: {distr: this.log ? 3 : 1, range: () => this.yRange}},
      axes: [{...axis, size: 26, space: 70, gap: 4, label: AXES[this.view.axis].label, labelSize: 18, labelFont: font, labelGap: 0,
              values: (_, ticks) => AXES[this.view.axis].ticks(ticks)},
             {...axis, ...this.ownTicks(), size: (u, texts, at, cycle) => axisSize(u, texts, at, cycle, font), gap: 6,
              values: (_, ticks) => this.yTicks(ticks)}],
      cursor: {y: false, points: {size: 7, width: 1.5}, drag: {x: true, y: false, setScale: false}, dataIdx: nearestDrawn,
               bind: {dblclick: () => () => (this.view.zoom(null), null)}},
      series: [{}, ...this.shown().map((series) => this.seriesOptions(series))],
      hooks: {setSelect: [(u) => this.selected(u)], setCursor: [(u) => this.hovered(u)]},
    };
  }

  // For scales that uPlot's own ticks do not fit. uPlot calls `splits` only if one of `incrs` suits it, and this one always does.
  ownTicks() {
    const [low, high] = this.yRange;
    const own = {incrs: [Math.max(high - low, 5)], space: 1, filter: (_, ticks) => ticks};
    if (this.log) return {...own, splits: () => logTicks(low, high)};
    return high - low > 1e30 || high - low < 1e-30 ? {...own, splits: () => evenTicks(low, high)} : {space: 34};
  }

  yTicks(ticks) {
    return this.percent ? tickTexts(ticks.map((tick) => (tick === null ? null : 100 * tick))).map((text) => text && text + " %") : tickTexts(ticks);
  }

  seriesOptions({color, style, xs}) {
    const stroke = seriesPaint(color), dash = DASHES[dashOf(color)];
    const few = xs.length <= 60;
    const points = style === "dots" && few ? {show: true, size: 5, fill: stroke, stroke} : {show: xs.length === 1, size: 5, fill: stroke, stroke};
    if (style === "area") return {stroke, width: 1, fill: faded(stroke, 0.85), points: {show: xs.length === 1}};
    return {stroke: style === "faint" ? faded(stroke, 0.65) : stroke, width: style === "faint" ? 1 : 1.75, dash, points};
  }

  toggleLog() {
    this.log = !this.log;
    this.logChosen = true;
    this.logButton.setAttribute("aria-pressed", String(this.log));
    this.draw();
  }

  // ---- reading --------------------------------------------------------------------------------

  selected(u) {
    if (u.select.width < 5) return;
    const [min, max] = [u.select.left, u.select.left + u.select.width].map((left) => u.posToVal(left, "x"));
    u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
    this.view.zoom([min, max]);
  }

  hovered(u) {
    if (this.following) return;
    const left = u.cursor.left;
    this.view.hover(left === undefined || left < 0 ? null : u.posToVal(left, "x"), this);
  }

  // Follows another chart or the keyboard to x; null: nothing points anywhere.
  follow(x, source) {
    if (!this.uplot) return;
    if (source !== this) {
      this.following = true;
      this.uplot.setCursor(x === null ? {left: -10, top: -10} : {left: this.uplot.valToPos(x, "x"), top: 0});
      this.following = false;
    }
    if (x === null) this.readLast();
    else this.read((series) => nearest(series.xs, x, series.ys));
  }

  // Shows the last values while nothing points at the chart.
  readLast() { this.read((series) => series.ys.findLastIndex((value) => value !== null), false); }

  read(indexOf, tellsPlace = true) {
    const places = this.shown().map((series) => indexOf(series));
    const xs = new Set(this.shown().map((series, i) => series.xs[places[i]]).filter((x) => x !== undefined));
    const items = this.shown().map((series, i) => {
      const at = places[i];
      const value = at < 0 ? null : (series.own ?? series.ys)[at];
      return element("li", {}, swatchOf(series.color, series.style), element("span", {class: "name", title: series.name}, series.name),
                     element("span", {class: "value"}, series.format(value)),
                     tellsPlace && at >= 0 && xs.size > 1 ? element("span", {class: "at"}, AXES[this.view.axis].at(series.xs[at])) : null);
    });
    if (tellsPlace && xs.size === 1) items.push(element("li", {class: "at"}, AXES[this.view.axis].at([...xs][0])));
    this.legend.replaceChildren(...items);
    this.showMore();
  }

  openLegend() {
    this.more.setAttribute("aria-expanded", String(this.legend.classList.toggle("open")));
    this.showMore();
  }

  showMore() {
    const rest = this.shown().length - LEGEND_ITEMS;
    this.more.hidden = rest <= 0;
    this.more.textContent = this.legend.classList.contains("open") ? "Fewer" : `${rest} more`;
  }

  // ---- keys -----------------------------------------------------------------------------------

  key(event) {
    const moves = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity};
    const zooms = {"+": 0.5, "=": 0.5, "-": 2};
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key in zooms) this.zoomBy(zooms[event.key]);
    else if (event.key === "Escape" || event.key === "0") this.view.zoom(null);
    else return;
    event.preventDefault();
  }

  // Moves by points of the series that has most points.
  move(by) {
    const [main] = this.shown().toSorted((a, b) => b.xs.length - a.xs.length);
    if (!main || main.xs.length === 0) return;
    const [first, last] = [firstFrom(main.xs, this.range[0]), firstAfter(main.xs, this.range[1]) - 1];
    this.place = Math.min(Math.max((this.place ?? first - Math.sign(by)) + by, first), last);
    this.view.hover(main.xs[this.place], null);
    byId("spoken").textContent = [...this.legend.children].map((item) => [...item.children].map((part) => part.textContent).join(" ").trim() || item.textContent).join(", ");
  }

  zoomBy(factor) {
    const centre = this.place === undefined ? (this.range[0] + this.range[1]) / 2 : this.view.hovering ?? (this.range[0] + this.range[1]) / 2;
    const [low, high] = this.view.all();
    const half = (this.range[1] - this.range[0]) * factor / 2;
    const [from, to] = [Math.max(low, centre - half), Math.min(high, centre + half)];
    const most = Math.max(...this.shown().map(({xs}) => firstFrom(xs, to) - firstFrom(xs, from)));
    if (factor < 1 && most < LEAST_POINTS) return;
    this.view.zoom(to - from >= high - low ? null : [from, to]);
  }

  // ---- the same as a table --------------------------------------------------------------------

  makeTable() {
    this.details = element("details", {ontoggle: () => this.fillTable()}, element("summary", {}, "Table"));
    return this.details;
  }

  // Fills the table only if it is open. Its element stays, so that the reader's scroll position stays, too.
  fillTable() {
    if (!this.details.open) return;
    const made = this.table(), before = this.details.querySelector(".scroll");
    if (before) before.replaceChildren(...made.querySelector(".scroll").children);
    else this.details.append(made);
  }

  table() {
    const most = 200;
    const columns = this.shown().map((series) => ({...series, steps: series.run.axis(series.kind, "step")}));
    const all = [...new Set(columns.flatMap(({steps}) => (steps.length > 5000 ? thinned(steps, steps, steps[0], steps.at(-1), 50)[0] : steps)))].sort((a, b) => a - b);
    const steps = all.length <= most ? all : Array.from({length: most}, (_, i) => all[Math.round(i * (all.length - 1) / (most - 1))]);
    const rows = steps.map((step) => element("tr", {}, element("th", {scope: "row", class: "number"}, numberText(step)),
      columns.map((series) => {
        const at = firstFrom(series.steps, step);
        const value = series.steps[at] === step ? (series.own ?? series.ys)[at] : undefined;
        return element("td", {class: "number"}, value === undefined ? "" : exactText(value));
      })));
    const head = element("tr", {}, element("th", {scope: "col", class: "number"}, "step"), columns.map(({name}) => element("th", {scope: "col", class: "number"}, name)));
    const caption = steps.length < all.length ? `${this.title}: ${most} steps of the run; metrics.jsonl has all.` : this.title;
    return scrolling(`${this.title}, table`, caption, element("table", {}, element("thead", {}, head), element("tbody", {}, rows)));
  }
}

// The index of the point that uPlot marks. Series share one x axis, so most places of the others have no value here.
function nearestDrawn(u, series, closest) {
  const values = u.data[series];
  if (values[closest] !== undefined && values[closest] !== null) return closest;
  for (let far = 1; far < values.length; ++far) {
    for (const at of [closest - far, closest + far]) {
      if (values[at] !== undefined && values[at] !== null) return at;
    }
  }
  return closest;
}
