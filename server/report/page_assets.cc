#include "server/report/page_assets.h"

namespace fedge::server {

// Colours of series 1 to 4 are Okabe and Ito's, which stay apart for the colour-blind.
const std::string_view kReportStyle = R"css(
:root { color-scheme: light dark; --page: #f5f6f8; --card: #fff; --ink: #1b2430; --soft: #5b6673; --rule: #e1e5ea;
  --s0: #c3cad3; --s1: #0072b2; --s2: #d55e00; --s3: #009e73; --s4: #cfd6de; --s5: #b65c93; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12161b; --card: #1b2129; --ink: #e6eaef; --soft: #9aa5b1; --rule: #2e3742;
    --s0: #4a5563; --s1: #56b4e9; --s2: #f0914a; --s3: #2fc79a; --s4: #46515e; --s5: #e39ac5; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 32px 0 12px; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .86em; }
.facts { margin: 0; color: var(--soft); display: flex; flex-wrap: wrap; gap: 2px 18px; overflow-wrap: anywhere; }
.facts b { color: var(--ink); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(158px, 1fr)); gap: 12px; margin: 20px 0 0; padding: 0; }
.tiles div, figure, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tiles div { padding: 12px 14px; min-width: 0; }
.tiles dt { color: var(--soft); font-size: .82rem; }
.tiles dd { margin: 2px 0 0; font-size: 1.3rem; font-weight: 650; line-height: 1.25; }
.tiles dd + dd { font-size: .82rem; font-weight: 400; color: var(--soft); margin-top: 4px; }
.tiles code { font-size: 1.08rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); gap: 14px; }
.classes { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 10px; }
figure { margin: 0; padding: 12px 14px 8px; min-width: 0; }
figcaption { font-weight: 620; }
small { font-weight: 400; color: var(--soft); }
.key { position: relative; margin: 2px 0 4px; min-height: 1.5em; font-size: .82rem; color: var(--soft); }
.key span { margin-right: 14px; white-space: nowrap; }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 5px; background: currentColor; }
.key .s1 i { color: var(--s1); } .key .s2 i { color: var(--s2); } .key .s3 i { color: var(--s3); } .key .s4 i { color: var(--s4); }
.key .s5 i { color: var(--s5); }
output { position: absolute; inset: 0 0 auto; background: var(--card); color: var(--ink); font-variant-numeric: tabular-nums; }
output:empty { display: none; }
svg { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y; }
svg text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg .e { text-anchor: end; } svg .m { text-anchor: middle; }
svg path { fill: none; }
svg .g { stroke: var(--rule); }
svg .c { stroke: var(--soft); stroke-dasharray: 3 3; visibility: hidden; }
svg .c.on { visibility: visible; }
svg .l { stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg .d { stroke-width: 5; stroke-linecap: round; }
svg .s0 { stroke: var(--s0); } svg .s1 { stroke: var(--s1); } svg .s2 { stroke: var(--s2); } svg .s3 { stroke: var(--s3); }
svg .s5 { stroke: var(--s5); }
svg .b { stroke: none; }
svg .b.s1 { fill: var(--s1); } svg .b.s2 { fill: var(--s2); } svg .b.s3 { fill: var(--s3); } svg .b.s4 { fill: var(--s4); }
.small { padding: 8px 10px 4px; }
.small figcaption { font-size: .84rem; font-weight: 500; display: flex; justify-content: space-between; gap: 8px; white-space: nowrap; }
.small b, .small span { overflow: hidden; text-overflow: ellipsis; }
.small .l { stroke-width: 1.8; } .small .d { stroke-width: 3.6; } .small text { font-size: 10px; }
.card { padding: 12px 16px; overflow-x: auto; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 560px; padding: 0; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 12px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
th { position: sticky; top: 0; background: var(--card); color: var(--soft); font-weight: 600; }
td:last-child, th:last-child { text-align: left; }
.numbers td:last-child, .numbers th:last-child { text-align: right; }
.charts + .card { margin-top: 14px; }
footer { margin-top: 28px; color: var(--soft); font-size: .82rem; }
@media (max-width: 520px) { main { padding: 16px 12px 32px; } h1 { font-size: 1.35rem; } .tiles { grid-template-columns: 1fr 1fr; gap: 8px; }
  .tiles dd { font-size: 1.2rem; } .tiles code { font-size: .95rem; } .classes { grid-template-columns: 1fr 1fr; } .charts { gap: 10px; }
  figure svg text { font-size: 14px; } .small svg text { font-size: 12px; } }
@media print { figure { break-inside: avoid; } .scroll { max-height: none; } }
)css";

const std::string_view kReportScript = R"js(
for (const figure of document.querySelectorAll("figure[data-x]")) {
  const svg = figure.querySelector("svg"), cursor = svg.querySelector(".c"), output = figure.querySelector("output");
  const xs = figure.dataset.x.split(" ").map(Number), texts = figure.dataset.t.split(";");
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    let nearest = 0;
    xs.forEach((value, i) => { if (Math.abs(value - x) < Math.abs(xs[nearest] - x)) nearest = i; });
    cursor.setAttribute("transform", `translate(${xs[nearest]} 0)`);
    cursor.classList.add("on");
    output.textContent = texts[nearest];
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => { cursor.classList.remove("on"); output.textContent = ""; });
}
)js";

}  // namespace fedge::server
