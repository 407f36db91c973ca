#include "server/report/page/rank_section.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "server/report/charts/round_chart.h"

namespace fedge::server {
namespace {

constexpr std::array kColours = {1, 2, 3, 5};

using RankFigure = double RankMetrics::*;

double at_rank(const RoundMetrics& round, std::uint64_t rank, RankFigure figure) {
  const auto found = std::ranges::find(round.ranks, rank, &RankMetrics::rank);
  return found == round.ranks.end() ? kNotMeasured : (*found).*figure;
}

std::vector<std::uint64_t> ranks_of(std::span<const RoundMetrics> rounds) {
  std::set<std::uint64_t> ranks;
  for (const RoundMetrics& round : rounds)
    for (const RankMetrics& figures : round.ranks) ranks.insert(figures.rank);
  return {ranks.begin(), ranks.end()};
}

// All ranks, or as many as there are colours: the lowest, the highest and some between.
std::vector<std::uint64_t> drawn(const std::vector<std::uint64_t>& ranks) {
  if (ranks.size() <= kColours.size()) return ranks;
  std::vector<std::uint64_t> chosen;
  for (std::size_t i = 0; i < kColours.size(); ++i)
    chosen.push_back(ranks[i * (ranks.size() - 1) / (kColours.size() - 1)]);
  return chosen;
}

std::string ranks_over_rounds(std::span<const RoundMetrics> rounds, const std::vector<std::uint64_t>& ranks,
                              const char* title, const char* y_title, Unit unit, RankFigure what) {
  Chart chart = chart_over_rounds(rounds, title, y_title, unit);
  for (const std::uint64_t rank : drawn(ranks)) {
    Series series{"rank " + std::to_string(rank), {}, kColours.at(chart.series.size())};
    for (const RoundMetrics& round : rounds) series.y.push_back(at_rank(round, rank, what));
    chart.series.push_back(std::move(series));
  }
  return figure(chart);
}

// The last evaluated round, over the ranks.
std::string over_ranks(const RoundMetrics& last, const std::vector<std::uint64_t>& ranks, const char* title,
                       const char* y_title, Unit unit, RankFigure what) {
  Chart chart;
  chart.title = title;
  chart.x_title = "rank, after round " + std::to_string(last.round);
  chart.y_title = y_title;
  chart.y_unit = unit;
  chart.series = {{"", {}, 1}};
  for (const std::uint64_t rank : ranks) {
    chart.x.push_back(static_cast<double>(rank));
    chart.rounds.push_back(last.round);
    chart.series[0].y.push_back(at_rank(last, rank, what));
  }
  return figure(chart);
}

std::string rank_table(const RoundMetrics& last, bool text) {
  std::string out =
      "<div class=\"card scroll\"><table class=\"numbers\"><thead><tr><th>rank</th><th>accuracy</th>"
      "<th>loss</th>";
  if (text) out += "<th>bits per byte</th><th>perplexity per token</th>";
  out += "</tr></thead><tbody>\n";
  for (const RankMetrics& figures : last.ranks) {
    out += "<tr><td>" + std::to_string(figures.rank) + "</td><td>" +
           with_unit(figures.accuracy, Unit::kPercent) + "</td><td>" + with_unit(figures.loss, Unit::kNone) +
           "</td>";
    if (text)
      out += "<td>" + with_unit(figures.bits_per_byte, Unit::kNone) + "</td><td>" +
             with_unit(std::exp(figures.loss), Unit::kNone) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string rank_section(std::span<const RoundMetrics> rounds) {
  const std::vector<std::uint64_t> ranks = ranks_of(rounds);
  if (ranks.empty()) return "";
  const RoundMetrics* last = nullptr;
  for (const RoundMetrics& round : rounds)
    if (!round.ranks.empty()) last = &round;
  const bool text = std::ranges::any_of(
      last->ranks, [](const RankMetrics& figures) { return std::isfinite(figures.bits_per_byte); });
  std::string out =
      "<h2>Accuracy per adapter rank <small>(the model with only the first ranks of its "
      "adapters)</small></h2>"
      "<div class=\"charts\">\n";
  if (text) {
    out += over_ranks(*last, ranks, "Bits per byte by rank", "bits per byte", Unit::kNone,
                      &RankMetrics::bits_per_byte) +
           ranks_over_rounds(rounds, ranks, "Bits per byte of each rank", "bits per byte", Unit::kNone,
                             &RankMetrics::bits_per_byte);
  }
  if (!text)
    out += over_ranks(*last, ranks, "Accuracy by rank", "accuracy", Unit::kPercent, &RankMetrics::accuracy);
  out += ranks_over_rounds(rounds, ranks, "Accuracy of each rank", "accuracy", Unit::kPercent,
                           &RankMetrics::accuracy);
  return out + "</div>\n" + rank_table(*last, text);
}

}  // namespace fedge::server
