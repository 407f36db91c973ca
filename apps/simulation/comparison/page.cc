#include "apps/simulation/comparison/page.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/simulation/comparison/curves.h"
#include "core/text.h"
#include "server/report/charts/comparison_chart.h"
#include "server/report/metrics_csv.h"
#include "server/report/page/page_frame.h"

namespace fedge::apps {
namespace {

using server::escape_html;

std::string fact(const std::string& name, const std::string& value) {
  return "<div><dt>" + name + "</dt><dd>" + escape_html(value) + "</dd></div>\n";
}

std::string seeds_of(const std::vector<RunGroup>& groups) {
  std::set<std::uint64_t> seeds;
  for (const RunGroup& group : groups)
    for (const FinishedRun& run : group.runs) seeds.insert(run.seed);
  std::string text;
  for (const std::uint64_t seed : seeds) text += (text.empty() ? "" : ", ") + std::to_string(seed);
  return text;
}

std::string facts(const std::vector<RunGroup>& groups) {
  std::size_t runs = 0;
  std::size_t rounds = 0;
  for (const RunGroup& group : groups)
    for (const FinishedRun& run : group.runs) {
      ++runs;
      rounds = std::max(rounds, run.rounds.size());
    }
  return "<dl class=\"facts\">\n" + fact("Groups", std::to_string(groups.size())) +
         fact("Runs", std::to_string(runs)) + fact("Seeds", seeds_of(groups)) +
         fact("Rounds", std::to_string(rounds)) + "</dl>\n";
}

// Says which runs failed, and why, and which have not ended.
std::string failures(const std::vector<RunGroup>& groups) {
  std::string out;
  for (const RunGroup& group : groups)
    for (const FinishedRun& run : group.runs)
      if (!run.failure.empty())
        out += "<p class=\"failed\"><b>" + escape_html(group.name) + ", seed " + std::to_string(run.seed) +
               ", failed:</b> " + escape_html(run.failure) + ".</p>\n";
      else if (!run.complete)
        out += "<p class=\"failed\"><b>" + escape_html(group.name) + ", seed " + std::to_string(run.seed) +
               ", has not ended:</b> its values are those of its first " + std::to_string(run.rounds.size()) +
               " rounds.</p>\n";
  return out;
}

std::string name_of(const SweepResults& results, std::size_t cell) { return results.cells()[cell].name; }

std::string table(const SweepResults& results, bool differences) {
  std::string out = "<div class=\"card\"><table class=\"comparison-table numbers\"><thead><tr><th>group</th>";
  if (!differences) out += "<th>runs</th>";
  for (const Column& column : results.columns()) out += "<th>" + escape_html(column.title) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (std::size_t cell = 0; cell < results.cells().size(); ++cell) {
    if (differences && results.baseline_of(cell) == cell) continue;
    out += "<tr><td>" + escape_html(name_of(results, cell)) + "</td>";
    if (!differences) out += "<td>" + std::to_string(results.of(cell).runs.size()) + "</td>";
    for (std::size_t column = 0; column < results.columns().size(); ++column) {
      std::string text = differences ? results.shown_difference(cell, column) : results.shown(cell, column);
      const bool bold = text.starts_with("**");
      std::erase(text, '*');
      text = escape_html(text);
      out += "<td>" + (bold ? "<b>" + text + "</b>" : text) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string latex_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) out += '\\';
    if (c == '\\')
      out += "\\textbackslash{}";
    else if (c == '~')
      out += "\\textasciitilde{}";
    else if (c == '^')
      out += "\\textasciicircum{}";
    else
      out += c;
  }
  return out;
}

// "$81.97 \pm 1.05$".
std::string latex_number(std::string text) {
  const std::string sign = " ± ";
  const std::size_t at = text.find(sign);
  if (at == std::string::npos && text.find_first_not_of("0123456789.+-") != std::string::npos)
    return latex_text(text);
  if (at != std::string::npos) text.replace(at, sign.size(), " \\pm ");
  return "$" + text + "$";
}

std::string csv_value(double value) { return std::isfinite(value) ? number_text(value) : ""; }

}  // namespace

std::string comparison_page(const std::string& title, const SweepResults& results,
                            const std::vector<RunGroup>& groups,
                            const std::vector<ComparisonFigure>& figures) {
  std::string page =
      server::page_begin(title) + "<h1>" + escape_html(title) + "</h1>\n" + facts(groups) + failures(groups) +
      "<h2>Results <small>(mean ± standard deviation over seeds)</small></h2>\n" + table(results, false);
  if (results.baseline())
    page +=
        "<h2>Minus " + escape_html(*results.baseline()) +
        " <small>(on the same seeds: mean difference ± its 95 % confidence interval, bold if that excludes "
        "0)</small></h2>\n" +
        table(results, true);
  std::string section;
  for (const ComparisonFigure& figure : figures) {
    if (figure.section != section) {
      if (!section.empty()) page += "</div>\n";
      page += "<h2>" + escape_html(figure.section) + "</h2><div class=\"charts comparison\">\n";
      section = figure.section;
    }
    page += server::page_figure(figure.title, figure.svg);
  }
  if (!section.empty()) page += "</div>\n";
  return page + server::page_end();
}

std::string latex_table(const SweepResults& results) {
  std::string text =
      "% \\usepackage{booktabs}; mean and standard deviation over the seeds\n\\begin{tabular}{l" +
      std::string(results.columns().size(), 'r') + "}\n\\toprule\ngroup";
  for (const Column& column : results.columns()) text += " & " + latex_text(column.title);
  text += " \\\\\n\\midrule\n";
  for (std::size_t cell = 0; cell < results.cells().size(); ++cell) {
    text += latex_text(name_of(results, cell));
    for (std::size_t column = 0; column < results.columns().size(); ++column)
      text += " & " + latex_number(results.shown(cell, column));
    text += " \\\\\n";
  }
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string curves_csv(const std::vector<RunGroup>& groups) {
  server::CsvColumns columns;
  for (const RunGroup& group : groups)
    for (const FinishedRun& run : group.runs) {
      const server::CsvColumns own = server::columns_of(run.rounds);
      columns.classes = std::max(columns.classes, own.classes);
      columns.evaluation = columns.evaluation || own.evaluation;
      columns.task = columns.task || own.task;
      columns.ranks.insert(columns.ranks.end(), own.ranks.begin(), own.ranks.end());
    }
  std::ranges::sort(columns.ranks);
  columns.ranks.erase(std::ranges::unique(columns.ranks).begin(), columns.ranks.end());
  std::vector<std::string> names;
  std::string text = "group,round,runs";
  for (const server::NamedNumber& number : server::named_numbers({}, columns)) {
    names.push_back(number.name);
    text += "," + number.name + "," + number.name + "_sd";
  }
  text += "\r\n";
  for (const RunGroup& group : groups) {
    std::vector<std::vector<SampleSummary>> metrics;
    for (const std::string& name : names) metrics.push_back(over_runs(group, metric_quantity(name)));
    for (std::size_t i = 0; i < metrics.front().size(); ++i) {
      text += server::csv_field(group.name) + "," + std::to_string(group.runs.front().rounds[i].round) + "," +
              std::to_string(group.runs.size());
      for (const auto& metric : metrics)
        text += "," + csv_value(metric[i].mean) + "," + csv_value(metric[i].standard_deviation);
      text += "\r\n";
    }
  }
  return text;
}

}  // namespace fedge::apps
