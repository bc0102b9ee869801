// The page: of one run, or of several.

// What a run has besides its curves.
const aside = ({topology, recipe, log, later, confusion}) => [topology, recipe, log, later, confusion];

class Page {
  constructor(data) {
    this.load(data);
    this.view = new View(this.runs);
    this.view.changed = () => this.showControls();
    this.build();
  }

  load({program, runs}) {
    this.program = program;
    this.runs = runs.map((facts, index) => new Run(facts, index));
    labelRuns(this.runs);
  }

  build() {
    this.fill();
    this.makeControls();
    this.buildCharts(new ChartList(this.runs).specs());
  }

  buildCharts(specs) {
    const charts = element("div", {class: "charts"});
    this.view.charts = specs.map((spec) => new Chart(spec, this.view));
    charts.append(...this.view.charts.map(({figure}) => figure));
    this.curves.replaceChildren(...(this.view.charts.length ? [charts] : [element("p", {}, "There are no figures yet.")]));
    this.view.reload();
  }

  // New figures of the same runs. What the reader has opened, zoomed or hidden stays so.
  update(data) {
    const before = JSON.stringify(this.runs.map(aside));
    this.load(data);
    const hidden = new Set(this.runs.filter((run) => [...(this.view.hidden ?? [])].some((old) => old.index === run.index)));
    this.view.runs = this.runs;
    this.view.hidden = hidden;
    if (JSON.stringify(this.runs.map(aside)) !== before) this.fillMain();
    if (!byId("head").contains(document.activeElement)) this.fillHead(hidden);
    const specs = new ChartList(this.runs).specs();
    const same = specs.length === this.view.charts.length && specs.every((spec, i) => spec.id === this.view.charts[i].id);
    if (!same) return this.buildCharts(specs);
    this.view.charts.forEach((chart, i) => chart.renew(specs[i].series, hidden));
    if (typeof this.view.hovering === "number") this.view.hover(this.view.hovering, null);
  }

  fill() {
    this.fillHead(new Set());
    this.curves = element("div", {id: "curves"});
    this.fillMain();
    byId("foot").replaceChildren(`Written by ${this.program}. Charts: uPlot.`);
  }

  fillHead(hidden) {
    const many = this.runs.length > 1;
    document.title = many ? `${this.runs.length} runs – decent-train` : `${this.runs[0].name} – decent-train`;
    byId("head").replaceChildren(...(many ? this.headOfMany(hidden) : runHead(this.runs[0])).filter(Boolean),
      element("p", {class: "alert", id: "gone", hidden: true}, "The program that serves this page does not answer: there are no new figures."));
  }

  fillMain() {
    byId("main").replaceChildren(this.curves, ...(this.runs.length > 1 ? this.partsOfMany() : this.partsOfOne(this.runs[0])).filter(Boolean));
  }

  headOfMany(hidden) {
    return [element("h1", {}, `${this.runs.length} runs`), ...resultTable(this.runs, this.view, hidden),
            ...this.runs.filter((run) => run.problems.length).map((run) => element("div", {class: "notice"}, element("p", {}, `${run.label}: ${run.problems.join("; ")}`)))];
  }

  partsOfOne(run) {
    return [section("Topology", "topology", () => topologyBlock(run)), section("Classes", "per-class", () => classBlock(run)),
            section("Warnings", "warned", () => warningsBlock(run)), section("Later evaluations", "later", () => laterBlock(run)),
            section("Recipe", "recipe-title", () => recipeBlock(run)), section("Machine and program", "machine-title", () => machineBlock(run))];
  }

  partsOfMany() {
    const topologies = this.runs.map((run) => [run, shownOrNotice(() => topologyBlock(run))]).filter(([, block]) => block)
      .map(([run, block]) => element("div", {}, element("h3", {class: "key"}, runKey(run)), block));
    return [section("What differs between their recipes", "differ", () => differenceTable(this.runs)),
            section("Topologies", "topology", () => topologies.length ? element("div", {class: "split"}, topologies) : null)];
  }

  // ---- controls -------------------------------------------------------------------------------

  makeControls() {
    const choices = Object.entries(AXES).map(([axis, {name}]) => element("label", {class: "choice"},
      element("input", {type: "radio", name: "axis", value: axis, checked: axis === this.view.axis, onchange: () => this.view.setAxis(axis)}),
      element("span", {}, name)));
    this.reset = element("button", {type: "button", id: "reset", onclick: () => this.view.zoom(null)}, "Show all");
    byId("controls").replaceChildren(element("fieldset", {}, element("legend", {}, "Over"), choices), this.reset,
      element("p", {class: "hint"}, "Drag across a chart to zoom, double-click to see all."));
    this.showControls();
  }

  showControls() { this.reset.disabled = this.view.range === null; }
}

// A page that was served by the program looks for new figures as long as it is open, less often the longer they take.
const LOOK_MS = 2000;

async function follow(shown) {
  let seen = null, wait = LOOK_MS;
  while (true) {
    await new Promise((done) => setTimeout(done, wait));
    try {
      const stamp = await (await fetch("/stamp")).text();
      const begin = performance.now();
      if (stamp !== seen) shown.update(await (await fetch("/data")).json());
      wait = Math.max(LOOK_MS, 20 * (performance.now() - begin));
      seen = stamp;
      byId("gone").hidden = true;
    } catch {
      byId("gone").hidden = false;
    }
  }
}

const page = new Page(JSON.parse(byId("data").textContent));
window.decentReport = page;
if (document.body.dataset.origin === "served") follow(page);

// Canvases do not follow style sheets.
const redraw = () => page.view.charts.forEach((chart) => chart.draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
function print(begins) {
  PRINTED_WIDTH.now = begins ? PRINTED_WIDTH.paper : null;
  document.documentElement.classList.toggle("printing", begins);
  redraw();
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
