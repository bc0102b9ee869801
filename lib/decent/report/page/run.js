// A run as the charts need it: columns of its figures, and the samples and seconds at each step.

const SHARES = /^(accuracy|top\d+|precision|recall|f1|mean_iou|dice|auc)$/;  // metrics from 0 to 1

class Run {
  constructor(facts, index) {
    Object.assign(this, facts);
    // Names of figures may equal properties that every object has, such as "constructor".
    this.train = Object.assign(Object.create(null), facts.train);
    this.eval = Object.assign(Object.create(null), facts.eval);
    this.index = index;
    this.steps = facts.train.step ?? [];
    this.measure();
  }

  // Samples and training time up to each train line, computed from the speed and time of updates in the lines.
  measure() {
    const count = this.steps.length;
    this.samples = new Array(count);
    this.seconds = new Array(count);
    const {step_ms = [], samples_per_s = []} = this.train;
    let samples = 0, seconds = 0, before = 0;
    for (let i = 0; i < count; ++i) {
      const updates = this.steps[i] - before;
      samples += updates * (samples_per_s[i] ?? 0) * (step_ms[i] ?? 0) / 1000;
      seconds += updates * (step_ms[i] ?? 0) / 1000;
      this.samples[i] = Math.round(samples);  // a product of rounded numbers
      this.seconds[i] = seconds;
      before = this.steps[i];
    }
  }

  // The place of a step on an axis: interpolated between two train lines, or extrapolated after the last.
  at(axis, step) {
    if (axis === "step" || this.steps.length === 0) return axis === "step" ? step : 0;
    const values = axis === "samples" ? this.samples : this.seconds;
    const next = Math.min(firstFrom(this.steps, step), this.steps.length - 1);
    if (this.steps[next] === step) return values[next];
    const from = next > 0 ? this.steps[next - 1] : 0;
    const begin = next > 0 ? values[next - 1] : 0;
    return begin + (values[next] - begin) * (step - from) / (this.steps[next] - from);
  }

  axis(kind, name) {
    if (kind === "train") return name === "step" ? this.steps : name === "samples" ? this.samples : this.seconds;
    const steps = this.eval.step ?? [];
    return name === "step" ? steps : steps.map((step) => this.at(name, step));
  }

  column(kind, name) { return this[kind][name] ?? null; }

  // The metrics of its evaluations besides the loss, in the order of the file.
  metrics() {
    return Object.keys(this.eval).filter((name) => !["step", "epoch", "loss", "samples", "consensus_distance"].includes(name));
  }

  lastStep() { return Math.max(this.steps.at(-1) ?? 0, this.eval.step?.at(-1) ?? 0, this.end?.step ?? 0); }
  lastEpoch() { return Math.max(this.last("train", "epoch") ?? 0, this.last("eval", "epoch") ?? 0); }
  trainingSeconds() { return this.spent("time", this.lastStep()); }

  // Samples or seconds up to a step; null if the train lines have none.
  spent(axis, step) { return (axis === "samples" ? this.samples : this.seconds).at(-1) > 0 ? this.at(axis, step) : null; }

  // Samples a second over the whole training.
  throughput() {
    const [samples, seconds] = [this.samples.at(-1), this.seconds.at(-1)];
    return samples > 0 && seconds > 0 ? samples / seconds : null;
  }

  last(kind, name) { return this[kind][name]?.at(-1) ?? null; }

  // The lowest loss of its evaluations or its train lines; null if there is none.
  bestLoss(kind) {
    const losses = (this[kind].loss ?? []).filter((loss) => loss !== null);
    return losses.length ? losses.reduce((a, b) => Math.min(a, b)) : null;
  }

  // The point at which its loss was first this low: {step, samples, time}, or null.
  reached(loss, kind) {
    const found = (this[kind].loss ?? []).findIndex((each) => each !== null && each <= loss);
    if (found < 0) return null;
    const step = this[kind].step[found];
    return {step, samples: this.spent("samples", step), time: this.spent("time", step)};
  }
}

// The index of the first value that passes; all later values pass, too.
function firstThat(values, passes) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(values[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

const firstFrom = (values, wanted) => firstThat(values, (value) => value >= wanted);
const firstAfter = (values, wanted) => firstThat(values, (value) => value > wanted);

// The index of the value nearest to `wanted` among those with a number in `of`; -1 if there is none.
function nearest(values, wanted, of) {
  let after = firstFrom(values, wanted), before = after - 1;
  while (after < values.length && of[after] === null) ++after;
  while (before >= 0 && of[before] === null) --before;
  if (after >= values.length) return before;
  return before < 0 || values[after] - wanted < wanted - values[before] ? after : before;
}
