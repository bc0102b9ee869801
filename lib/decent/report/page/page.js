// The page of one run or several.

class Page {
  constructor(data) {
    this.load(data);
    this.view = new View(this.runs);
    this.view.changed = () => this.showControls();
    this.parts = new Map();
    this.curves = element("section", {id: "curves", "aria-labelledby": "curves-title"}, element("h2", {id: "curves-title", class: "unseen"}, "Curves"));
    this.fillHead();
    this.fillMain();
    this.makeControls();
    this.fillCurves();
    byId("foot").replaceChildren(`Written by ${this.program}. Charts: uPlot.`);
  }

  load({program, runs}) {
    this.program = program;
    this.runs = runs.map((facts, index) => new Run(facts, index));
    labelRuns(this.runs);
  }

  // Shows new figures of the same runs. All that the reader has opened, zoomed or hidden stays so.
  update(data) {
    const hidden = new Set([...this.view.hidden].map((run) => run.index));
    this.load(data);
    this.view.runs = this.runs;
    this.view.hidden = new Set(this.runs.filter((run) => hidden.has(run.index)));
    this.fillHead();
    this.fillMain();
    this.fillCurves();
    if (typeof this.view.hovering === "number") this.view.hover(this.view.hovering, null);
  }

  fillHead() {
    const many = this.runs.length > 1;
    document.title = many ? `${this.runs.length} runs – decent-train` : `${this.runs[0].name} – decent-train`;
    refill(byId("head"), (many ? this.headOfMany() : runHead(this.runs[0])).filter(Boolean));
  }

  fillMain() {
    const parts = this.runs.length > 1 ? this.partsOfMany() : this.partsOfOne(this.runs[0]);
    arrange(byId("main"), [this.curves, ...parts.filter(Boolean)]);
  }

  // Existing charts stay, with their scales and open tables.
  fillCurves() {
    const before = new Map(this.view.charts.map((chart) => [chart.id, chart]));
    this.view.charts = new ChartList(this.runs).specs().map((spec) => before.get(spec.id)?.renew(spec) ?? new Chart(spec, this.view));
    this.grid ??= element("div", {class: "charts"});
    arrange(this.grid, this.view.charts.map(({figure}) => figure));
    this.empty ??= element("p", {class: "empty"});
    this.empty.textContent = this.runs.some((run) => run.status === "running") ? "There are no figures yet." : "There are no figures.";
    arrange(this.curves, [this.curves.firstChild, this.view.charts.length ? this.grid : this.empty]);
    this.view.reload();
  }

  // Makes a section anew only if its content has changed.
  part(title, id, facts, make) {
    const shown = JSON.stringify(facts) ?? "";
    if (this.parts.get(id)?.shown !== shown) this.parts.set(id, {shown, section: section(title, id, make)});
    return this.parts.get(id).section;
  }

  headOfMany() {
    return [element("h1", {}, `${this.runs.length} runs`), resultTable(this.runs, this.view), noticesOf(this.runs)];
  }

  partsOfOne(run) {
    const {topology, workers, confusion, later, warnings, recipe, starts, resumes} = run;
    return [this.part("Topology", "topology", [topology, workers], () => topologyBlock(run)),
            this.part("Classes", "per-class", [confusion, later], () => classBlock(run)),
            this.part("Warnings", "warned", warnings, () => warningsBlock(run)),
            this.part("Later evaluations", "later", later, () => laterBlock(run)),
            this.part("Recipe", "recipe-title", recipe, () => recipeBlock(run)),
            this.part("Changes of workers", "workers-title", [resumes, starts], () => workersBlock(run)),
            this.part("Starts", "starts-title", starts, () => startsBlock(run)),
            this.part("Machine and program", "machine-title", starts.at(-1), () => machineBlock(run))];
  }

  partsOfMany() {
    const facts = (names) => this.runs.map((run) => names.map((name) => run[name]));
    return [this.part("What differs between their recipes", "differ", facts(["label", "recipe", "workers"]), () => differenceTable(this.runs)),
            this.part("Topologies", "topology", facts(["label", "topology", "workers"]), () => topologiesOf(this.runs))];
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

// A page that was served by the program asks for new figures as long as it is open: the longer an answer takes, the less often.
const LOOK_MS = 2000;

async function answerTo(path) {
  try {
    const answer = await fetch(path);
    return answer.ok ? await answer.text() : null;
  } catch {
    return null;
  }
}

const GONE = "The program that serves this page does not answer: there are no new figures.";

function tell(problem) {
  byId("gone").hidden = problem === "";
  byId("gone").textContent = problem;
}

function updateOrTell(shown, data) {
  try {
    shown.update(JSON.parse(data));
    tell("");
  } catch (error) {
    tell(`The new figures cannot be shown: ${error.message}.`);
  }
}

async function follow(shown, drawn) {
  let seen = null, wait = LOOK_MS;
  while (true) {
    await new Promise((done) => setTimeout(done, wait));
    const begin = performance.now();
    const stamp = await answerTo("/stamp");
    const data = stamp === null || stamp === seen ? null : await answerTo("/data");
    if (stamp === null || (stamp !== seen && data === null)) {
      tell(GONE);
      continue;
    }
    if (byId("gone").textContent === GONE) tell("");
    if (data !== null && data !== drawn) updateOrTell(shown, data);
    if (data !== null) [seen, drawn] = [stamp, data];
    wait = Math.max(LOOK_MS, 20 * (performance.now() - begin));
  }
}

const page = new Page(JSON.parse(byId("data").textContent));
window.decentReport = page;
// The first answer is compared with the data in the page, since most often nothing is new.
if (document.body.dataset.origin === "served") follow(page, byId("data").textContent);

// Canvases and computed colours do not follow style sheets.
function redraw() {
  page.view.charts.forEach((chart) => chart.draw());
  colorShares(document);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// Paper does not scroll: elements that are too wide for it are made smaller.
const PAPER_WIDTH = 704;
function fitToPaper(prints) {
  for (const table of document.querySelectorAll(".scroll > table")) {
    table.style.zoom = "";
    if (prints && table.offsetWidth > PAPER_WIDTH) table.style.zoom = String(PAPER_WIDTH / table.offsetWidth);
  }
}

function print(begins) {
  PRINTED.now = begins;
  document.documentElement.classList.toggle("printing", begins);
  fitToPaper(begins);
  redraw();
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
