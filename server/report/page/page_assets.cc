#include "server/report/page/page_assets.h"

#include "server/report/charts/chart_scale.h"
#include "server/report/page/page_frame.h"

namespace fedge::server {

const std::string_view kReportStyle = R"css(
:root { color-scheme: light dark; --page: #f5f6f8; --card: #fff; --ink: #1b2430; --soft: #5b6673; --rule: #e1e5ea; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12161b; --card: #1b2129; --ink: #e6eaef; --soft: #9aa5b1; --rule: #2e3742; }
  .failed { background: #3b1616; color: #ffc9c4; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 32px 0 12px; }
.failed { margin: 10px 0; padding: 10px 14px; border-left: 5px solid #c62828; border-radius: 6px; background: #fdecea; color: #7f1d1d; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .86em; }
.facts { margin: 12px 0 0; display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 8px 24px; }
.facts div { min-width: 0; }
.facts dt { color: var(--soft); font-size: .82rem; }
.facts dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.facts code { font-weight: 400; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(148px, 1fr)); gap: 12px; margin: 20px 0 0; padding: 0; }
.tiles div, figure, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tiles div { padding: 12px 14px; min-width: 0; }
.tiles dt { color: var(--soft); font-size: .82rem; }
.tiles dd { margin: 2px 0 0; font-size: 1.3rem; font-weight: 650; line-height: 1.25; }
.tiles dd + dd { font-size: .82rem; font-weight: 400; color: var(--soft); margin-top: 4px; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)); gap: 14px; }
.classes { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 10px; }
figure { position: relative; margin: 0; padding: 10px 14px 8px; min-width: 0; max-width: 580px; }
figcaption { display: flex; align-items: baseline; gap: 8px; font-weight: 620; min-height: 1.9em; }
figcaption span { flex: 1; min-width: 0; }
figcaption button { border: 1px solid var(--rule); border-radius: 5px; background: none; color: var(--soft); font: .75rem system-ui, sans-serif;
  padding: 1px 6px; cursor: pointer; }
figcaption button:hover, figcaption button:focus-visible { color: var(--ink); border-color: var(--soft); }
small { font-weight: 400; color: var(--soft); }
output { position: absolute; inset: 8px 14px auto; min-height: 1.9em; background: var(--card); font-size: .86rem; font-variant-numeric: tabular-nums; }
output:empty { display: none; }
.pic { overflow: hidden; }
.pic svg { display: block; width: 100%; height: auto; margin-top: -7.27%; touch-action: pan-y; }
.small .pic svg { margin-top: -10.9%; }
.wide { max-width: 900px; } .wide .pic svg { margin-top: -5%; }
.comparison { grid-template-columns: repeat(auto-fill, minmax(min(540px, 100%), 1fr)); }
.small { padding: 8px 10px 4px; }
.small figcaption { font-size: .84rem; font-weight: 500; white-space: nowrap; }
.small b, .small span { overflow: hidden; text-overflow: ellipsis; }
.card { padding: 12px 16px; overflow-x: auto; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 560px; padding: 0; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 12px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
th { position: sticky; top: 0; background: var(--card); color: var(--soft); font-weight: 600; }
td:last-child, th:last-child { text-align: left; }
.comparison-table td:first-child, .comparison-table th:first-child { text-align: left; }
.tracks td:nth-child(-n+2), .tracks th:nth-child(-n+2) { text-align: left; }
.numbers td:last-child, .numbers th:last-child { text-align: right; }
.confusion { width: auto; } .confusion th:first-child { text-align: left; position: static; } .confusion td { border-bottom: none; }
.c1 { background: rgb(0 114 178 / 8%); } .c2 { background: rgb(0 114 178 / 16%); } .c3 { background: rgb(0 114 178 / 24%); }
.c4 { background: rgb(0 114 178 / 31%); } .c5 { background: rgb(0 114 178 / 38%); } .c6 { background: rgb(0 114 178 / 44%); }
.c7 { background: rgb(0 114 178 / 50%); } .c8 { background: rgb(0 114 178 / 55%); } .c9 { background: rgb(0 114 178 / 60%); }
.charts + .card, .card + .card { margin-top: 14px; }
footer { margin-top: 28px; color: var(--soft); font-size: .82rem; }
@media (max-width: 520px) { main { padding: 16px 12px 32px; } h1 { font-size: 1.35rem; } .tiles { grid-template-columns: 1fr 1fr; gap: 8px; }
  .tiles dd { font-size: 1.2rem; } .classes { grid-template-columns: 1fr 1fr; } .charts { gap: 10px; }
 .facts { grid-template-columns: 1fr 1fr; } .small button { display: none; }
  figure .fig text { font-size: 14px; } .wide .fig text { font-size: 17px; } figure .fig .f text { font-size: 12px; } }
@media print {
  :root { color-scheme: light; --page: #fff; } main { padding: 0; } h2 { break-after: avoid; }
  figure { break-inside: avoid; } .charts, .comparison { grid-template-columns: 1fr 1fr; } .scroll { max-height: none; }
  .card { overflow: visible; } th, td { white-space: normal; padding: 3px 6px; } figcaption button { display: none; }
}
)css";

// Colours of series 1 to 3 and 5 to 7 are near Okabe and Ito's, which colour-blind readers can tell apart.
const std::string_view kFigureStyle = R"css(
.fig text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #5b6673; }
.fig .t { font-size: 15px; font-weight: 600; fill: #1b2430; } .fig .n { fill: #1b2430; }
.fig .e { text-anchor: end; } .fig .m { text-anchor: middle; }
.fig .f text { font-size: 10px; } .fig .f .t { font-size: 12px; }
.fig path { fill: none; } .fig .bg { fill: #fff; } .fig .g { stroke: #e1e5ea; }
.fig .l { stroke-width: 2; stroke-linejoin: round; } .fig .d { stroke-width: 5; stroke-linecap: round; }
.fig .l.p0 { stroke-width: 3; } .fig .d.p0 { stroke-width: 7.5; } .fig .p1 { stroke-dasharray: 8 6; } .fig .p2 { stroke-dasharray: 3 4; } .fig .p3 { stroke-dasharray: 12 3 3 3; }
.fig .d { stroke-dasharray: none; }
.fig .s0 { stroke: #c3cad3; } .fig .s1 { stroke: #0072b2; } .fig .s2 { stroke: #d55e00; } .fig .s3 { stroke: #009e73; } .fig .s5 { stroke: #b65c93; }
.fig .s6 { stroke: #c98500; } .fig .s7 { stroke: #3f9fd8; } .fig .s8 { stroke: #4b5563; }
.fig .w { stroke-width: 1.3; } .fig .b { stroke: none; } .fig .b.s1 { fill: #0072b2; } .fig .b.s2 { fill: #d55e00; } .fig .b.s3 { fill: #009e73; } .fig .b.s4 { fill: #cfd6de; }
.fig .b.s5 { fill: #b65c93; } .fig .b.s6 { fill: #c98500; } .fig .b.s7 { fill: #3f9fd8; } .fig .b.s8 { fill: #4b5563; } .fig .b.a { fill-opacity: .15; }
.fig .c { stroke: #5b6673; stroke-dasharray: 3 3; visibility: hidden; } .fig .c.on { visibility: visible; }
@media (prefers-color-scheme: dark) {
  .fig text { fill: #9aa5b1; } .fig .t, .fig .n { fill: #e6eaef; } .fig .bg { fill: #1b2129; } .fig .g { stroke: #2e3742; }
  .fig .s0 { stroke: #4a5563; } .fig .s1 { stroke: #56b4e9; } .fig .s2 { stroke: #f0914a; } .fig .s3 { stroke: #2fc79a; } .fig .s5 { stroke: #e39ac5; }
  .fig .s6 { stroke: #f2b13c; } .fig .s7 { stroke: #8fd0f5; } .fig .s8 { stroke: #c3cad3; }
  .fig .b.s1 { fill: #56b4e9; } .fig .b.s2 { fill: #f0914a; } .fig .b.s3 { fill: #2fc79a; } .fig .b.s4 { fill: #46515e; }
  .fig .b.s5 { fill: #e39ac5; } .fig .b.s6 { fill: #f2b13c; } .fig .b.s7 { fill: #8fd0f5; } .fig .b.s8 { fill: #c3cad3; } .fig .c { stroke: #9aa5b1; }
}
)css";

const std::string_view kReportScript = R"js(
for (const button of document.querySelectorAll("figure button")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const svg = button.closest("figure").querySelector("svg"), copy = svg.cloneNode(true);
    copy.querySelector(".c")?.remove();
    const link = document.createElement("a"), name = document.title + " " + svg.querySelector("title").textContent;
    link.download = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80) + ".svg";
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], {type: "image/svg+xml"}));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}
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

std::string svg_open(double width, double height, const std::string& title, const std::string& description) {
  const std::string size = coordinate(width) + " " + coordinate(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" +
         coordinate(width * 1.5) + "\" height=\"" + coordinate(height * 1.5) +
         "\" class=\"fig\" role=\"img\"><title>" + escape_html(title) + "</title><desc>" +
         escape_html(description) + "</desc><style>" + std::string(kFigureStyle) +
         "</style><path class=\"bg\" d=\"M0 0h" + coordinate(width) + "v" + coordinate(height) + "H0z\"/>";
}

}  // namespace fedge::server
