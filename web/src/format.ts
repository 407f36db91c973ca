// Numbers and times for people.

const units = ["B", "KB", "MB", "GB", "TB"];

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; ++unit) value /= 1000;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (value < 60) return `${value.toFixed(1)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return value < 172_800 ? `${Math.round(value / 3600)} h` : `${Math.round(value / 86_400)} days`;
}

export function ago(time: string | null): string {
  if (time === null) return "never";
  const passed = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (passed < 2) return "now";
  return `${passed < 60 ? `${Math.round(passed)} s` : seconds(passed)} ago`;
}

// How far something is, rounded down so that 100 is the end: "42 %, 12.0 of 28.0 MB".
export function share(done: number, whole: number): string {
  const [amount, unit] = bytes(done).split(" ");
  const all = bytes(whole);
  const percent = whole === 0 ? 100 : Math.floor(done / whole * 100);
  return `${percent} %, ${all.endsWith(` ${unit}`) ? amount : bytes(done)} of ${all}`;
}

// "2026-12-01 14:03:07 UTC"; the same zone as in logs and the audit log.
export function moment(time: string | null): string {
  return time === null ? "" : time.replace("T", " ").replace("Z", " UTC");
}

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : `${(value * 100).toFixed(2)} %`;
}

// At most four significant digits.
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  return Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
