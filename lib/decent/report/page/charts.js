// The charts of a page, and the view that they share: the x axis, the part of it in view, the position of the pointer.

const AXES = {
  step: {name: "Steps", label: "step", ticks: tickTexts, at: (x) => `step ${numberText(x)}`},
  samples: {name: "Samples", label: "samples", ticks: tickTexts, at: (x) => `${numberText(Math.round(x))} samples`},
  time: {name: "Time", label: "training time", ticks: timeTicks, at: (x) => secondsText(x)},
};

function timeTicks(values) {
  const largest = Math.max(...values.map((value) => value ?? 0));
  const [unit, name] = largest >= 7200 ? [3600, " h"] : largest >= 180 ? [60, " min"] : [1, " s"];
  return values.map((value) => (value === null ? "" : Number((value / unit).toPrecision(4)) + name));
}

class View {
  constructor(runs) {
    this.runs = runs;
    this.axis = "step";
    this.range = null;  // null: all
    this.hidden = new Set();  // runs
    this.charts = [];
    this.changed = () => {};
  }

  // All runs from their beginning to the end of the longest.
  all() {
    const shown = this.runs.filter((run) => !this.hidden.has(run));
    const ends = (shown.length ? shown : this.runs).map((run) => run.at(this.axis, run.lastStep()));
    return [0, Math.max(...ends) || 1];
  }

  zoom(range) {
    this.range = range;
    this.charts.forEach((chart) => chart.zoomed());
    this.changed();
  }

  setAxis(axis) {
    this.axis = axis;
    this.range = null;
    this.reload();
    this.changed();
  }

  reload() { this.charts.forEach((chart) => chart.reload()); }

  hover(x, source) {
    this.hovering = x;
    this.charts.forEach((chart) => chart.follow(x, source));
  }

  show(run, shown) {
    if (shown) this.hidden.delete(run);
    else this.hidden.add(run);
    this.reload();
  }
}

// Whether the smallest and largest positive values differ by `factor`, so that a linear scale would show only the large ones.
function spans(columns, factor) {
  let low = Infinity, high = 0;
  for (const ys of columns) {
    for (const y of ys) {
      if (y === null || y <= 0) continue;
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
  }
  return high > low * factor;
}

const KNOWN_TRAIN = ["step", "epoch", "loss", "loss_mean", "lr", "samples_per_s", "step_ms", "comm_wait_ms", "data_wait_ms"];
const CONSENSUS = "How far the workers' models are apart: the root mean square of their distances from the average model. " +
  "Gossip keeps it small, it shrinks with the learning rate, and at 0 all workers have the same model.";
const ABOUT = {
  grad_norm: {title: "Gradient norm", note: "Before clipping, the mean over workers."},
  gpu_memory_mb: {title: "Memory of the GPU", unit: "MiB, on rank 0", zero: true,
                  note: "The most that tensors took since the line before. LibTorch holds more, and CUDA needs some itself."},
  loss_scale: {title: "Loss scale", note: "The factor by which float16 training multiplies its loss."},
  wrap_share: {title: "Wrap share", percent: true,
               note: "Of the differences sent in a few bits, the share that the codes got wrong because copies were too far apart."},
};

class ChartList {
  constructor(runs) {
    this.runs = runs;
    this.many = runs.length > 1;
  }

  specs() {
    return [...this.losses(), ...this.metrics(), ...this.consensus(), ...this.speed(), this.one("train", "lr", {title: "Learning rate", zero: true}),
            ...this.others()].filter((spec) => spec && spec.series.length);
  }

  series(run, kind, column, more = {}) {
    const ys = run.column(kind, column);
    if (ys === null || !ys.some((y) => y !== null)) return null;
    return {name: this.many ? run.label : column, color: this.many ? run.index : 0, style: kind === "eval" ? "dots" : "line", run, kind, column, ys,
            format: numberText, ...more};
  }

  // A chart of one column, of all runs.
  one(kind, column, {title = column, id = `${kind}-${column}`, percent = false, ...more} = {}) {
    const format = percent ? percentText : numberText;
    const series = this.runs.map((run) => this.series(run, kind, column, {format})).filter(Boolean);
    if (!this.many && series.length) series[0].name = title.toLowerCase();
    return {id, title, percent, series, ...more};
  }

  losses() {
    if (this.many) {
      return [this.one("eval", "loss", {title: "Evaluation loss", unit: "of the averaged model"}),
              this.one("train", "loss", {title: "Training loss", unit: "mean over workers"})];
    }
    const [run] = this.runs;
    const evaluated = this.series(run, "eval", "loss", {name: "evaluation", color: 1});
    const mean = this.series(run, "train", "loss_mean", {name: "training, mean"});
    const train = this.series(run, "train", "loss", {name: "training", style: evaluated || mean ? "faint" : "line"});
    const note = mean ? "Training is the loss of single steps; its mean is over all steps since the line before." : "";
    return [{id: "loss", title: "Loss", note, series: [train, mean, evaluated].filter(Boolean)}];
  }

  metrics() {
    const names = [...new Set(this.runs.flatMap((run) => run.metrics()))];
    const shares = names.filter((name) => SHARES.test(name));
    const specs = names.filter((name) => this.many || !SHARES.test(name))
      .map((name) => this.one("eval", name, {title: titleOf(name), percent: SHARES.test(name)}));
    if (this.many || shares.length === 0) return specs;
    const series = shares.map((name, i) => this.series(this.runs[0], "eval", name, {name: name, color: i + 1, format: percentText})).filter(Boolean);
    return [{id: "shares", title: shares.length === 1 ? titleOf(shares[0]) : "Metrics", unit: "of the averaged model", percent: true, series}, ...specs];
  }

  consensus() {
    if (this.runs.every((run) => run.workers === 1)) return [];
    const spec = this.one("eval", "consensus_distance", {title: "Consensus distance", id: "consensus", note: CONSENSUS});
    spec.series.forEach((series) => { if (!this.many) series.color = 3; });
    return [{...spec, log: spans(spec.series.map(({ys}) => ys), 50)}];
  }

  speed() {
    const throughput = this.one("train", "samples_per_s", {title: "Throughput", unit: "samples a second, all workers", zero: true});
    if (!this.many) return [this.stacked(this.runs[0]), throughput];
    return [this.one("train", "step_ms", {title: "Time of an update", unit: "ms", zero: true}),
            this.one("train", "comm_wait_ms", {title: "Waiting for workers", unit: "ms", zero: true}), throughput];
  }

  // The time of an update as areas over one another: the whole time, then the rest without the parts above.
  stacked(run) {
    const {step_ms: all = [], comm_wait_ms: comm = [], data_wait_ms: data = []} = run.train;
    const parts = [["waiting for data", all, data, 4], ["waiting for workers", less(all, data), comm, 1],
                   ["computing", less(less(all, data), comm), less(less(all, data), comm), 0]];
    const series = parts.filter(([, , own]) => own.some((y) => y !== null)).map(([name, ys, own, color]) =>
      ({name, color, style: "area", run, kind: "train", ys, own, format: (value) => (value === null ? "–" : numberText(value) + " ms")}));
    return {id: "step-time", title: "Time of an update", unit: "ms, on rank 0", zero: true, stacked: true, series};
  }

  others() {
    const names = [...new Set(this.runs.flatMap((run) => Object.keys(run.train)))].filter((name) => !KNOWN_TRAIN.includes(name));
    return names.map((name) => {
      const spec = this.one("train", name, {title: titleOf(name), ...ABOUT[name]});
      return {...spec, log: name === "loss_scale" || spans(spec.series.map(({ys}) => ys), 1000)};
    });
  }
}

const titleOf = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
const less = (all, part) => all.map((value, i) => (value === null ? null : Math.max(0, value - (part[i] ?? 0))));
