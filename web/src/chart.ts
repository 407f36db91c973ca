// Line charts over rounds, as SVG.
import { h, replace, svg } from "./dom.js";
import { figure } from "./format.js";

export interface Line {
  name: string;
  points: [number, number][];  // round and value, ascending
  dashed?: boolean;
}
export interface ChartOptions {
  title: string;
  format?: (value: number) => string;
  tick?: (value: number) => string;  // on the axis; default: format
  whole?: boolean;  // the values are whole numbers
  fromZero?: boolean;
  limit?: { value: number; name: string };  // a horizontal line
}

const width = 560;
const height = 200;
const left = 52;
const right = 12;
const top = 10;
const bottom = 24;

// A step of 1, 2 or 5 times a power of ten, for about `count` steps in the range.
function stepOf(range: number, count: number): number {
  const raw = range / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  for (const factor of [1, 2, 5]) if (raw <= factor * power) return factor * power;
  return 10 * power;
}

function verticalStep(range: number, options: ChartOptions): number {
  const step = stepOf(range, 4);
  return options.whole ? Math.max(1, step) : step;
}

function extent(lines: Line[], options: ChartOptions): { x: [number, number]; y: [number, number] } {
  let [firstX, lastX, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const line of lines)
    for (const [x, y] of line.points) {
      firstX = Math.min(firstX, x);
      lastX = Math.max(lastX, x);
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
  if (options.limit) high = Math.max(high, options.limit.value);
  if (options.fromZero) low = Math.min(low, 0);
  if (high === low) high = low + (Math.abs(low) || 1) * 0.1;
  const step = verticalStep(high - low, options);
  return {
    x: [firstX, Math.max(lastX, firstX + 1)],
    y: [Math.floor(low / step) * step, Math.ceil(high / step) * step],
  };
}

// The value of the line at this round, or of the last round before it.
function valueAt(line: Line, x: number): number | null {
  let found: number | null = null;
  for (const [round, value] of line.points) {
    if (round > x) break;
    found = value;
  }
  return found;
}

export function chart(lines: Line[], options: ChartOptions): HTMLElement {
  const format = options.format ?? figure;
  const shown = lines.filter(line => line.points.length > 0);
  const figureBox = h("figure", { class: "chart" }, h("figcaption", {}, options.title));
  if (shown.length === 0) {
    figureBox.append(h("p", { class: "empty" }, "No values yet"));
    return figureBox;
  }
  const { x, y } = extent(shown, options);
  const atX = (value: number): number => left + (value - x[0]) / (x[1] - x[0]) * (width - left - right);
  const atY = (value: number): number => height - bottom - (value - y[0]) / (y[1] - y[0]) * (height - top - bottom);
  const last = shown.map(line => `${line.name} ${format(line.points[line.points.length - 1]![1])}`).join(", ");
  const plot = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${options.title} by round; at the end: ${last}`,
  });
  const step = verticalStep(y[1] - y[0], options);
  for (let value = y[0]; value <= y[1] + step / 2; value += step) {
    const rounded = Math.round(value / step) * step;
    plot.append(
      svg("line", { class: "grid", x1: left, x2: width - right, y1: atY(rounded), y2: atY(rounded) }),
      svg("text", { class: "tick", x: left - 8, y: atY(rounded) + 4, "text-anchor": "end" }, (options.tick ?? format)(rounded)));
  }
  const stepX = Math.max(1, stepOf(x[1] - x[0], 6));
  for (let round = Math.ceil(x[0] / stepX) * stepX; round <= x[1]; round += stepX)
    plot.append(svg("text", { class: "tick", x: atX(round), y: height - 6, "text-anchor": "middle" }, String(round)));
  if (options.limit)
    plot.append(
      svg("line", { class: "limit", x1: left, x2: width - right, y1: atY(options.limit.value), y2: atY(options.limit.value) }),
      svg("text", { class: "tick", x: width - right, y: atY(options.limit.value) - 5, "text-anchor": "end" }, options.limit.name));
  shown.forEach((line, index) => {
    const path = line.points.map(([a, b], i) => `${i ? "L" : "M"}${atX(a).toFixed(1)} ${atY(b).toFixed(1)}`).join("");
    plot.append(svg("path", { class: `line series-${index % 6}${line.dashed ? " dashed" : ""}`, d: path }));
    const [lastX, lastY] = line.points[line.points.length - 1]!;
    plot.append(svg("circle", { class: `dot series-${index % 6}`, cx: atX(lastX), cy: atY(lastY), r: 3 }));
  });
  const cursor = svg("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
  plot.append(cursor);
  const legend = h("div", { class: "legend" });
  const tell = (round: number): void => replace(legend,
    h("span", { class: "muted" }, `round ${round}`),
    ...shown.map((line, index) => {
      const value = valueAt(line, round);
      return h("span", {}, h("i", { class: `key series-${index % 6}` }), `${line.name} `,
        h("b", {}, value === null ? "–" : format(value)));
    }));
  tell(x[1]);
  plot.addEventListener("pointermove", event => {
    const box = plot.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * width;
    const round = Math.round(x[0] + (at - left) / (width - left - right) * (x[1] - x[0]));
    const near = Math.min(x[1], Math.max(x[0], round));
    cursor.setAttribute("x1", String(atX(near)));
    cursor.setAttribute("x2", String(atX(near)));
    cursor.setAttribute("visibility", "visible");
    tell(near);
  });
  plot.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    tell(x[1]);
  });
  figureBox.append(plot, legend);
  return figureBox;
}
