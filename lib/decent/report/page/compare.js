// Several runs beside one another: their results, and the differences between their recipes.

// Names that tell the runs apart: their own, else their folders.
function labelRuns(runs) {
  const names = runs.map((run) => run.name);
  runs.forEach((run) => { run.label = names.filter((name) => name === run.name).length > 1 ? run.folder : run.name; });
}

const runKey = (run) => [swatchOf(run.index), run.label];

// The lines by which losses are compared: evaluations if all runs have some, else train lines.
const lossKind = (runs) => (runs.every((run) => run.bestLoss("eval") !== null) ? "eval" : "train");

// The lowest loss that all runs have reached, and the kind of lines that it is from.
function commonLoss(runs) {
  const kind = lossKind(runs);
  const bests = runs.map((run) => run.bestLoss(kind));
  return bests.includes(null) ? null : {loss: Math.max(...bests), kind};
}

function resultTable(runs, view) {
  const common = commonLoss(runs), kind = lossKind(runs);
  const share = [...new Set(runs.flatMap((run) => run.metrics()))].find((name) => SHARES.test(name));
  const columns = [
    ["steps", (run) => run.lastStep(), numberText], ["training time", (run) => run.trainingSeconds(), secondsText],
    [kind === "eval" ? "best evaluation loss" : "best training loss", (run) => run.bestLoss(kind), numberText, Math.min],
    share ? [`best ${share}`, (run) => bestOf(run.eval[share]), percentText, Math.max] : null,
    ["consensus distance", (run) => run.last("eval", "consensus_distance"), numberText],
    ["samples/s", (run) => run.throughput(), (value) => numberText(value, 3), Math.max],
    common ? [`step of loss ${numberText(common.loss)}`, (run) => run.reached(common.loss, common.kind)?.step, numberText, Math.min] : null,
    common ? ["samples", (run) => run.reached(common.loss, common.kind)?.samples, (value) => numberText(value === null ? null : Math.round(value)), Math.min] : null,
    common ? ["time", (run) => run.reached(common.loss, common.kind)?.time, secondsText, Math.min] : null,
  ].filter(Boolean).map(([name, value, format, better]) => ({name, values: runs.map((run) => value(run) ?? null), format, better}));
  const head = element("tr", {}, element("th", {scope: "col"}, "run"), element("th", {scope: "col"}, "status"),
                       columns.map(({name}) => element("th", {scope: "col", class: "number"}, name)));
  const rows = runs.map((run, i) => element("tr", {},
    element("th", {scope: "row"}, element("label", {class: "key"},
      element("input", {type: "checkbox", checked: !view.hidden.has(run), onchange: (event) => view.show(run, event.target.checked)}), runKey(run))),
    element("td", {}, statusMark(run)),
    columns.map(({values, format, better}) => element("td", {class: "number"}, isBest(values, i, better) ? element("strong", {}, format(values[i])) : format(values[i])))));
  const said = common ? `The best common loss is ${numberText(common.loss)}, the lowest that all runs have reached in ` +
    `${common.kind === "eval" ? "an evaluation" : "training"}. The last three columns say where each run was first that low.` : "";
  return scrolling("What the runs came to", said, element("table", {id: "results"}, element("thead", {}, head), element("tbody", {}, rows)));
}

// What a reader should know before the figures; folded if there are many runs.
function noticesOf(runs) {
  const said = runs.flatMap((run) => [failureOf(run), ...run.problems].filter(Boolean).map((problem) => `${run.label}: ${problem}`));
  if (said.length === 0) return null;
  const list = listOf(said);
  if (said.length <= 3) return element("div", {class: "notice"}, list);
  return element("details", {class: "notice"}, element("summary", {}, `${said.length} notes on what could not be read or has failed`), list);
}

// Runs that share a topology share its picture.
function topologiesOf(runs) {
  const groups = Map.groupBy(runs, ({topology, workers}) => JSON.stringify([topology, workers]));
  const blocks = [...groups.values()].map((alike) => [alike, shownOrNotice(() => topologyBlock(alike[0]))]).filter(([, block]) => block)
    .map(([alike, block]) => element("div", {}, element("h3", {class: "keys"}, alike.map((run) => element("span", {class: "key"}, runKey(run)))), block));
  return blocks.length ? element("div", {class: "split"}, blocks) : null;
}

const finite = (values) => (values ?? []).filter((value) => value !== null);
const bestOf = (values) => (finite(values).length ? finite(values).reduce((a, b) => Math.max(a, b)) : null);

function isBest(values, i, better) {
  const known = finite(values);
  return better !== undefined && known.length > 1 && values[i] !== null && values[i] === better(...known) && known.some((value) => value !== values[i]);
}

const MOST_RUNS_ABREAST = 6;

// The values of each key in which the runs differ: [key, texts].
function differencesOf(runs) {
  const values = runs.map((run) => new Map(run.recipe.map(({key, value}) => [key, value])));
  const keys = [...new Set(values.flatMap((each) => [...each.keys()]))].filter((key) => key !== "output" && key !== "name");
  return [["workers", runs.map((run) => (run.workers ? String(run.workers) : "–"))], ...keys.map((key) => [key, values.map((each) => each.get(key) ?? "–")])]
    .filter(([, texts]) => new Set(texts).size > 1);
}

// A column for each run; if there are many runs, a row for each.
function differenceTable(runs) {
  const differences = differencesOf(runs);
  if (differences.length === 0) return element("p", {}, "Nothing: all keys of their recipes are alike.");
  const keyHead = (key, scope) => element("th", {scope, class: "code"}, key);
  const runHead = (run, scope) => element("th", {scope}, element("span", {class: "key"}, runKey(run)));
  const cell = (text) => element("td", {class: "code"}, text);
  const upright = runs.length > MOST_RUNS_ABREAST;
  const head = upright ? differences.map(([key]) => keyHead(key, "col")) : runs.map((run) => runHead(run, "col"));
  const rows = upright ? runs.map((run, i) => [runHead(run, "row"), differences.map(([, texts]) => cell(texts[i]))])
    : differences.map(([key, texts]) => [keyHead(key, "row"), texts.map(cell)]);
  return scrolling("What differs between their recipes", null, element("table", {id: "differences"},
    element("thead", {}, element("tr", {}, element("th", {scope: "col"}, upright ? "run" : "key"), head)),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.flat())))));
}
