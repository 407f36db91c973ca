// The dashboard in Chromium, against a real coordinator and real clients: node dashboard_test.mjs BIN MODULES CASE [SHOTS]
//
// watch    a run from its submission to its end, without reloading the page
// roles    what each role sees and may press; every press is in the audit log
// hostile  everything that clients say is text; nobody can frame the page, and no token is in an address
// reading  axe finds nothing on any page, in light and dark, also on a phone; everything is reachable with the keyboard
// secure   a secure sum that waits for a client: its stage, the client, and the coordinator's memory
// keys     the coordinator's key is announced and replaced, and who may do it
// transfers  an upload over a slow network is seen to move, without reloading, and not by another team
// large    1,000 clients and 1,000 rounds are shown; prints how long it took
//
// SHOTS: a directory for screenshots. Exit status 77: Chromium is not installed.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const [bin, modules, name, shots] = process.argv.slice(2);
const load = createRequire(path.resolve(modules, "tests.js"));
const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(one => fs.existsSync(one));
if (!chromium) {
  console.log("skipped: Chromium is not installed (package chromium)");
  process.exit(77);
}

if (!fs.existsSync(path.join(modules, "node_modules/playwright-core"))) {
  console.log("skipped: playwright-core could not be downloaded");
  process.exit(77);
}

const place = fs.mkdtempSync(path.join(os.tmpdir(), "fedge-dashboard-"));
const data = path.join(place, "data");
const processes = [];

const RUN = `
[run]
name = "machines"
rounds = ROUNDS
wait_for_clients = 2
[data]
dataset = "csv"
name = "machines"
numeric = ["temperature"]
mean = [70]
deviation = [12]
target = "ok"
classes = ["no", "yes"]
partition = { kind = "own", clients = 20 }
[model]
kind = "softmax"
[sampling]
clients_per_round = 2
`;

async function until(holds, what = String(holds)) {
  for (let i = 0; i < 1200; ++i) {
    const found = await holds();
    if (found) return found;
    await new Promise(done => setTimeout(done, 50));
  }
  throw new Error(`not within a minute: ${what}\n${fs.readFileSync(path.join(place, "log"), "utf8").slice(-3000)}`);
}

function start(program, parameters, log, input = null) {
  const file = fs.openSync(path.join(place, log), "a");
  const child = spawn(path.join(bin, program), parameters, { stdio: [input === null ? "ignore" : "pipe", "ignore", file] });
  if (input !== null) child.stdin.end(input);
  processes.push(child);
  return child;
}

function fedge(...parameters) {
  const done = spawnSync(path.join(bin, "fedge"), [...parameters.map(String), "--data-dir", data], { encoding: "utf8" });
  assert.equal(done.status, 0, `fedge ${parameters.join(" ")}: ${done.stderr}`);
  return done.stdout.trim();
}

async function startCoordinator() {
  const address = path.join(data, "api-address");
  fs.rmSync(address, { force: true });
  start("fedge-coordinator", ["--data-dir", data, "--listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"], "log");
  await until(() => fs.existsSync(address) && fs.readFileSync(address, "utf8").endsWith("\n"), "the coordinator starts");
  return `https://${fs.readFileSync(address, "utf8").trim()}`;
}

function token(user, grants) {
  fedge("user", "add", user, "--role", grants);
  return fedge("user", "token", "create", user);
}

function device(called, project = "default", address = []) {
  const join = fedge("token", "create", "--name", called, "--labels", "ward-3", "--project", project, ...address);
  return start("fedge-client", ["--state-dir", path.join(place, called), "run", "--token-file", "-", "--data",
    `machines=${path.join(place, "machines.csv")}`], `${called}.log`, join);
}

function submit(rounds, clients = 2, more = "") {
  const text = RUN.replace("ROUNDS", String(rounds)).replaceAll(/(wait_for_clients|clients_per_round) = 2/g, `$1 = ${clients}`);
  fs.writeFileSync(path.join(place, "run.toml"), text + more);
  fedge("run", "submit", path.join(place, "run.toml"));
}

// A device of the project lab with a large model, in run `number`, and the proxy to which it uploads slowly.
async function startSlowUpload(number, bytesPerSecond) {
  const slow = { bytesPerSecond };
  const port = Number(fs.readFileSync(path.join(data, "address"), "utf8").trim().split(":").pop());
  const proxy = net.createServer(client => {
    const server = net.connect(port, "127.0.0.1");
    server.pipe(client);
    client.on("data", piece => {
      server.write(piece);
      client.pause();
      setTimeout(() => client.resume(), piece.length / slow.bytesPerSecond * 1000);
    });
    for (const [one, other] of [[client, server], [server, client]]) {
      one.on("error", () => undefined);
      one.on("close", () => other.destroy());
    }
  });
  await new Promise(done => proxy.listen(0, "127.0.0.1", done));
  proxy.unref();
  fedge("project", "add", "lab");
  device("slow", "lab", ["--address", `127.0.0.1:${proxy.address().port}`]);
  const text = RUN.replace("ROUNDS", "1").replaceAll(/(wait_for_clients|clients_per_round) = 2/g, "$1 = 1")
    .replace('kind = "softmax"', 'kind = "mlp"\nhidden = [4000, 4000]');
  fs.writeFileSync(path.join(place, "large.toml"), text);
  fedge("run", "submit", path.join(place, "large.toml"), "--project", "lab");
  await until(() => JSON.parse(fedge("client", "transfers", "--run", number, "--format", "json"))
    .some(one => one.direction === "upload" && one.done > 0), "the upload moves");
  return slow;
}

// A page whose errors, also those of the content security policy, fail the test.
async function open(browser, url, access, options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("console", line => { if (line.type() === "error" && !/status of 40[134]/.test(line.text())) page.faults.push(line.text()); });
  page.on("pageerror", error => page.faults.push(String(error)));
  page.on("dialog", dialog => page.faults.push(`dialog ${dialog.message()}`));
  await page.goto(url);
  if (access) {
    await page.getByLabel("Access token").fill(access);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  }
  return page;
}

async function go(page, title, hash) {
  await page.evaluate(to => { location.hash = to; }, hash);
  await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
}

async function shot(page, file) {
  if (shots) await page.screenshot({ path: path.join(shots, `${file}.png`), fullPage: true });
}

const cases = {
  async watch(browser, url) {
    const page = await open(browser, url, token("ann", "submitter"));
    await page.evaluate(() => { window.sameDocument = true; });
    await go(page, "Runs", "#/runs");
    await page.getByText("No run was submitted yet").waitFor();
    submit(12);
    await page.getByRole("link", { name: "1 · machines" }).click();
    await page.getByText("Round 1 waits for clients: it needs 2, and 0 are ready").waitFor();
    await shot(page, "waiting");
    device("first");
    await page.getByText("it needs 2, and 1 is ready").waitFor();
    device("second");
    const state = page.locator(".stat", { hasText: "State" });
    await state.getByText("finished").waitFor({ timeout: 60_000 });
    await page.locator(".stat", { hasText: "Rounds" }).getByText("12", { exact: true }).waitFor();
    const curve = page.getByRole("img", { name: /^Accuracy by round; at the end: on clients [\d.]+ %/ });
    await curve.waitFor();
    const points = (await curve.locator("path.line").first().getAttribute("d")).split("L").length;
    assert.equal(points, 12, "the curve has a point for each round");
    await page.getByText("does not execute this run at present").waitFor();
    assert.equal(await page.evaluate(() => window.sameDocument), true, "the page was never reloaded");
    await shot(page, "run");
    await go(page, "Overview", "#/");
    await page.getByText("run.ended").waitFor();
    await shot(page, "overview");
    // The model, as a file; and an operator removes the run.
    await go(page, "Run 1", "#/runs/1");
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the model of round 12" }).click()]);
    assert.equal(file.suggestedFilename(), "run-1-round-12.safetensors");
    const result = JSON.parse(fedge("run", "show", 1, "--format", "json")).results;
    assert.deepEqual(fs.readFileSync(await file.path()), fs.readFileSync(path.join(result, "model.safetensors")));
    assert.equal(await page.getByRole("button", { name: "Remove" }).count(), 0);
    // The data is on the clients alone, so the coordinator cannot replay the run, and says so.
    await page.getByRole("button", { name: "Verify" }).click();
    await page.locator(".badge", { hasText: "failed" }).waitFor();
    await page.locator(".card", { hasText: "Verification" }).locator(".note.bad").waitFor();
    const operator = await open(browser, url, token("olga", "operator"));
    await go(operator, "Run 1", "#/runs/1");
    await operator.getByRole("button", { name: "Remove" }).click();
    await operator.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await operator.getByText("No run was submitted yet").waitFor();
    assert.equal(fs.existsSync(result), false);
    return [page, operator];
  },

  // What the dashboard shows of a secure sum that waits for a client, and of the privacy budget.
  async secure(browser, url) {
    const devices = ["first", "second", "third"].map(called => device(called));
    submit(100000, 3, `[secure_aggregation]
kind = "exact"
patience = 3000
[training.optimizer]
learning_rate = 0.001
`);
    const page = await open(browser, url, token("ann", "viewer"));
    await go(page, "Run 1", "#/runs/1");
    await until(() => JSON.parse(fedge("run", "show", 1, "--format", "json")).rounds >= 2, "two rounds");
    devices[1].kill("SIGSTOP");
    const steps = page.locator("ol.steps li");
    await page.getByText(/Waits for 1 client: \d/).waitFor();
    assert.equal(await steps.count(), 5);
    assert.equal(await page.locator("ol.steps li[aria-current=step]").count(), 1);
    await page.locator(".stat", { hasText: "Memory" }).getByText("MB").waitFor();
    const awaited = JSON.parse(fedge("run", "progress", 1, "--format", "json")).secure;
    assert.equal(awaited.awaited.length, 1);
    await shot(page, "secure");
    devices[1].kill("SIGCONT");
    const before = JSON.parse(fedge("run", "show", 1, "--format", "json")).rounds;
    await until(() => JSON.parse(fedge("run", "show", 1, "--format", "json")).rounds > before, "the sum goes on");
    return [page];
  },

  async transfers(browser, url) {
    const slow = await startSlowUpload(1, 1_000_000);
    const page = await open(browser, url, token("ann", "lab=viewer"));
    const stranger = await open(browser, url, token("olga", "default=admin"));
    await page.evaluate(() => { window.sameDocument = true; });
    await go(page, "Transfers", "#/transfers");
    const bar = page.getByRole("progressbar", { name: "Client 0, run 1, upload of the update" });
    await bar.waitFor();
    await page.getByText("1 upload, 0 downloads, 0 waiting.").waitFor();
    const far = async () => Number(await bar.evaluate(one => one.value));
    assert.match(await bar.getAttribute("aria-valuetext"), /^\d+ %, [\d.]+( KB)? of 64\.1 MB$/);
    // It moves while somebody works with the keyboard in the table.
    await page.getByRole("link", { name: "0", exact: true }).focus();
    const before = await far();
    await until(async () => await far() > before, "the bar moves");
    await page.getByRole("cell", { name: /^[\d.]+ [KM]B\/s$/ }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("href")), "#/clients/0");
    assert.equal(await far() < await bar.evaluate(one => one.max), true);
    await shot(page, "transfers");
    await go(stranger, "Transfers", "#/transfers");
    await stranger.getByText("Nothing is being uploaded or downloaded at present.").waitFor();
    await go(page, "Run 1", "#/runs/1");
    await page.getByRole("cell", { name: /^\d+ %, [\d.]+( KB)? of 64\.1 MB$/ }).waitFor();
    await go(page, "Transfers", "#/transfers");
    await bar.waitFor();
    // States that take a hundred clients or a full disk: the page shows what the coordinator would answer then.
    const item = { run: 1, project: "lab", round: 3, track: 0, kind: "training", since: new Date().toISOString() };
    await page.route("**/api/v1/transfers*", route => route.fulfill({ json: { next: null, items: [
      { ...item, transfer: 1, client: 4, direction: "upload", object: "update", bytes: 28e6, done: 12e6, waits_for: "disk", bytes_per_second: null },
      { ...item, transfer: 2, client: 5, direction: "upload", object: "update", bytes: 28e6, done: 0, waits_for: "turn", bytes_per_second: null },
      { ...item, transfer: 3, client: 6, direction: "download", object: "control", bytes: 28e6, done: 27.9e6, waits_for: null, bytes_per_second: 0 },
    ] } }));
    await page.getByText("2 uploads, 1 download, 2 waiting.").waitFor();
    for (const text of ["waits for the disk", "waits for its turn", "download of the control variates", "0 B/s"])
      assert.equal(await page.locator("td").filter({ hasText: text }).last().isVisible(), true, text);
    const shown = one => page.getByRole("progressbar", { name: `Client ${one}, run 1` }).getAttribute("aria-valuetext");
    assert.deepEqual([await shown(4), await shown(5), await shown(6)],
      ["42 %, 12.0 of 28.0 MB", "0 %, 0 B of 28.0 MB", "99 %, 27.9 of 28.0 MB"]);
    await shot(page, "transfers-waiting");
    await page.unroute("**/api/v1/transfers*");
    await bar.waitFor();
    slow.bytesPerSecond = Infinity;
    await page.getByText("Nothing is being uploaded or downloaded at present.").waitFor({ timeout: 60_000 });
    assert.equal(await page.evaluate(() => window.sameDocument), true, "the page was never reloaded");
    return [page, stranger];
  },

  async roles(browser, url) {
    for (const project of ["lab"]) fedge("project", "add", project);
    fedge("client", "add", "ab".repeat(32), "--name", "bed 7");
    submit(5);
    const pages = [];
    const expected = {
      viewer: { nav: ["Overview", "Runs", "Clients", "Transfers"], run: [], client: [] },
      submitter: { nav: ["Overview", "Runs", "Clients", "Transfers"], run: ["Pause", "Stop"], client: [] },
      operator: {
        nav: ["Overview", "Runs", "Clients", "Transfers", "Joining"], run: ["Pause", "Stop"],
        client: ["Rename", "Replace the device", "Revoke"],
      },
      admin: {
        nav: ["Overview", "Runs", "Clients", "Transfers", "Joining", "Audit log"], run: ["Pause", "Stop"],
        client: ["Rename", "Replace the device", "Revoke"],
      },
    };
    for (const [role, sees] of Object.entries(expected)) {
      const page = await open(browser, url, token(role, role));
      pages.push(page);
      assert.deepEqual(await page.getByRole("navigation").getByRole("link").allTextContents(), sees.nav, role);
      await go(page, "Run 1", "#/runs/1");
      await page.getByText("Run file").waitFor();
      assert.deepEqual(await page.locator("main .actions button").allTextContents(), sees.run, role);
      await go(page, "Client 0", "#/clients/0");
      await page.getByText("Accepted tasks").waitFor();
      assert.deepEqual(await page.locator("main .actions button").allTextContents(), sees.client, role);
    }
    // A role in another project: this one does not exist.
    const stranger = await open(browser, url, token("stranger", "lab=admin"));
    pages.push(stranger);
    await go(stranger, "Clients", "#/clients");
    await stranger.getByText("No client has joined yet").waitFor();
    await go(stranger, "Run 1", "#/runs/1");
    await stranger.getByText("there is no run 1").waitFor();
    // Each press is an entry of the audit log, in the user's name and with the reason.
    const [, submitter, operator] = pages;
    await go(submitter, "Run 1", "#/runs/1");
    await submitter.getByRole("button", { name: "Pause" }).click();
    await submitter.getByLabel("Reason, for the audit log").fill("lunch");
    await submitter.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await submitter.locator(".stat", { hasText: "State" }).getByText("paused").waitFor();
    await go(operator, "Client 0", "#/clients/0");
    await operator.getByRole("button", { name: "Revoke" }).click();
    await operator.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    assert.equal(JSON.parse(fedge("client", "show", 0, "--format", "json")).state, "enrolled");
    await operator.getByRole("button", { name: "Revoke" }).click();
    await operator.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await operator.locator(".stat", { hasText: "State" }).getByText("revoked").waitFor();
    await operator.getByRole("button", { name: "Admit again" }).click();
    await operator.locator(".stat", { hasText: "State" }).getByText("enrolled").waitFor();
    await go(operator, "Joining", "#/joining");
    await operator.getByLabel("Name").fill("bed 8");
    await operator.getByRole("button", { name: "Create" }).click();
    await operator.getByText(/^fedge1\./).waitFor();
    const log = JSON.parse(fedge("audit", "ls", "--format", "json")).map(entry => [entry.actor, entry.action, entry.details.reason]);
    for (const entry of [["user submitter", "run.paused", "lunch"], ["user operator", "client.revoked", undefined],
      ["user operator", "client.readmitted", undefined], ["user operator", "token.created", undefined]])
      assert.equal(log.some(one => JSON.stringify(one) === JSON.stringify(entry)), true, JSON.stringify(entry));
    await go(pages[3], "Audit log", "#/audit");
    await pages[3].getByText("client.readmitted").waitFor();
    await pages[3].getByRole("button", { name: "Check the chain" }).click();
    await pages[3].getByText(/entries, unbroken/).waitFor();
    await shot(pages[3], "audit");
    // A token that is revoked while its page is open leads back to the login.
    fedge("user", "remove", "viewer");
    await pages[0].getByText("does not accept this access token").waitFor();
    return pages;
  },

  async hostile(browser, url) {
    const evil = "<img src=x onerror=alert(1)>";
    const access = token("ann", "admin");
    fedge("client", "add", "cd".repeat(32), "--name", evil);
    // What a client says of itself and of its failures, as a hostile one would.
    processes.pop().kill("SIGTERM");
    await until(() => !fs.existsSync(path.join(data, "admin.sock")), "the coordinator stops");
    const failure = { run: 1, round: 1, kind: `failed.${evil}`, reason: evil, at: 1 };
    const activity = JSON.stringify({
      last_seen: 1, address: evil, software: evil, platform: evil, project: "default", accepted: 0,
      failures: { [evil]: 3 }, received: 0, sent: 0, last_failure: failure,
    });
    const written = spawnSync("python3", ["-c",
      "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('INSERT OR REPLACE INTO clients VALUES (0, ?)', [sys.argv[2]]); d.commit()",
      path.join(data, "fleet.db"), activity], { encoding: "utf8" });
    assert.equal(written.status, 0, written.stderr);
    url = await startCoordinator();
    const page = await open(browser, url, access);
    await go(page, "Clients", "#/clients");
    await page.getByText(`0 · ${evil}`).waitFor();
    await go(page, "Client 0", "#/clients/0");
    await page.getByText(`Last: failed.${evil}`).waitFor();
    for (const what of ["Address", "Version", "Platform"])
      assert.equal(await page.locator("dt", { hasText: what }).locator("xpath=following-sibling::dd[1]").textContent(), evil);
    assert.equal(await page.locator("img[src=x]").count(), 0);
    // The token is in no address, no cookie and no storage that outlives the tab.
    assert.equal((await page.context().cookies()).length, 0);
    assert.equal(page.url().includes(access.slice(6)), false);
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage)).then(text => text.includes("fedge_")), false);
    const requests = [];
    page.on("request", request => requests.push(request.url()));
    await go(page, "Overview", "#/");
    await page.getByText("Clients online").waitFor();
    assert.equal(requests.every(one => one.startsWith(url) && !one.includes(access.slice(6))), true, requests.join(" "));
    // Code that got into the page would not run: the policy allows only the coordinator's files.
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.injected = true";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<button id=b onclick='window.injected = true'>x</button>");
      document.getElementById("b").click();
    });
    assert.equal(await page.evaluate(() => window.injected), undefined);
    assert.equal(page.faults.length > 0 && page.faults.every(one => one.includes("Content Security Policy")), true);
    page.faults = [];
    // A page of somebody else can neither frame this one nor read an answer.
    const other = await open(browser, `data:text/html,<iframe src="${url}/"></iframe>`, null);
    await until(() => other.frames()[1]?.url().startsWith("chrome-error:"), "the frame is refused");
    other.faults = [];
    const read = await other.evaluate(to => fetch(`${to}/api/v1/identity`).then(() => "read", () => "refused"), url);
    assert.equal(read, "refused");
    other.faults = [];
    const refused = await open(browser, `${url}/?token=${access}`, null);
    await refused.getByLabel("Access token").waitFor();  // it asks for a token all the same
    return [page, refused];
  },

  async reading(browser, url) {
    const access = token("ann", "admin");
    submit(8);
    device("first");
    device("second");
    fedge("token", "create", "--uses", 5, "--approve", "--labels", "ward-4");
    await until(() => fedge("run", "show", 1).includes("finished"), "the run ends");
    fedge("key", "announce");
    await startSlowUpload(2, 150_000);
    const pages = [["Overview", "#/"], ["Runs", "#/runs"], ["Run 1", "#/runs/1"], ["Clients", "#/clients"],
      ["Client 0", "#/clients/0"], ["Transfers", "#/transfers"], ["Joining", "#/joining"], ["Audit log", "#/audit"]];
    const source = fs.readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
    for (const [look, options] of Object.entries({
      light: { colorScheme: "light" }, dark: { colorScheme: "dark" },
      phone: { colorScheme: "light", viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
      "phone-dark": { colorScheme: "dark", viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
    })) {
      const page = await open(browser, url, null, { ...options, bypassCSP: true });
      for (const [title, hash] of [["Log in", ""], ...pages]) {
        if (hash) {
          if (title === "Overview") {
            await page.getByLabel("Access token").fill(access);
            await page.getByRole("button", { name: "Log in" }).click();
            await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
          }
          await go(page, title, hash);
          await page.locator("main table, main .stat").first().waitFor();
        }
        await page.addScriptTag({ content: source });
        const found = await page.evaluate(() => window.axe.run());
        const text = found.violations.map(one => `${one.id}: ${one.nodes.map(node => node.html).join(" | ")}`).join("\n");
        assert.equal(text, "", `${title}, ${look}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
        assert.equal(wide, false, `${title} is wider than the screen, ${look}`);
        await shot(page, `${look}-${title.replaceAll(" ", "-").toLowerCase()}`);
      }
      assert.deepEqual(page.faults, []);
    }
    // With the keyboard alone: log in, and reach a run.
    const page = await open(browser, url, null);
    await page.keyboard.type(access);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    for (let i = 0; i < 40; ++i) {
      await page.keyboard.press("Tab");
      if (await page.evaluate(() => document.activeElement?.textContent) === "1 · machines") break;
    }
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Run 1" }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "H1");
    return [page];
  },

  async keys(browser, url) {
    device("first");
    await until(() => JSON.parse(fedge("client", "ls", "--online", "--format", "json")).length === 1, "a device is online");
    fedge("client", "add", "ab".repeat(32), "--name", "bed 7");
    const key = () => JSON.parse(fedge("key", "show", "--format", "json"));
    const viewer = await open(browser, url, token("vera", "viewer"));
    assert.equal(await viewer.getByRole("heading", { name: "The coordinator's key" }).count(), 0);
    const operator = await open(browser, url, token("olga", "operator"));
    const card = page => page.locator(".card", { hasText: "The coordinator's key" });
    const former = key().key;
    await card(operator).getByText(former).waitFor();
    assert.equal(await card(operator).getByRole("button").count(), 0);
    const page = await open(browser, url, token("ann", "admin"));
    await card(page).getByRole("button", { name: "Announce a next key" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    assert.equal(key().next_key, null);
    await card(page).getByRole("button", { name: "Announce a next key" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Announce" }).click();
    await until(() => key().unaware_clients === 1, "the device has stored the next key");
    const next = key().next_key;
    await card(page).getByText(next).waitFor();
    await go(page, "Clients", "#/clients");
    await go(page, "Overview", "#/");
    await card(page).getByText("Stored by 1 of 2 clients; not by 1 · bed 7 (never connected)").waitFor();
    await shot(page, "keys");
    // The clients that would be locked out are named before it is done.
    await card(page).getByRole("button", { name: "Replace the key" }).click();
    await page.getByRole("dialog").getByText("1 client cannot connect afterwards").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Replace" }).click();
    await card(page).getByText("No next key is announced.").waitFor();
    assert.equal(key().key, next);
    const membership = path.join(place, "first", "membership.json");
    await until(() => JSON.parse(fs.readFileSync(membership, "utf8")).coordinator_key === next, "the device has the new key");
    await until(() => JSON.parse(fedge("client", "ls", "--online", "--format", "json")).length === 1, "the device is back");
    assert.equal(JSON.parse(fedge("audit", "ls", "--format", "json"))
      .some(one => one.action === "key.rotated" && one.actor === "user ann" && one.details.unaware === "1"), true);
    return [viewer, operator, page];
  },

  async large(browser, url) {
    device("first");
    device("second");
    fedge("token", "create", "--count", 1000, "--name", "ward");
    submit(1000);
    const page = await open(browser, url, token("ann", "viewer"));
    await until(() => fedge("run", "show", 1).includes("finished"), "1,000 rounds");
    const measure = async (title, hash, there) => {
      await go(page, "Runs", "#/runs");
      const begin = Date.now();
      await go(page, title, hash);
      await there().waitFor();
      console.log(`${title}: shown after ${Date.now() - begin} ms`);
    };
    await measure("Clients", "#/clients", () => page.getByText(/^100\d clients/));
    assert.equal(await page.locator("tbody tr").count() >= 1000, true);
    await measure("Run 1", "#/runs/1", () => page.getByRole("img", { name: /^Accuracy by round/ }));
    const points = (await page.getByRole("img", { name: /^Accuracy by round/ }).locator("path.line").first().getAttribute("d")).split("L");
    assert.equal(points.length, 1000);
    await shot(page, "large");
    return [page];
  },
};

let browser;
try {
  fs.writeFileSync(path.join(place, "machines.csv"), "temperature,ok\n" + "70,yes\n90,no\n".repeat(40));
  const url = await startCoordinator();
  browser = await load("playwright-core").chromium.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  for (const page of await cases[name](browser, url)) assert.deepEqual(page.faults, []);
  console.log("ok");
} finally {
  await browser?.close();
  for (const child of processes) child.kill("SIGKILL");
  fs.rmSync(place, { recursive: true, force: true });
}
