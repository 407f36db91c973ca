#include "server/report/page/track_section.h"

#include <algorithm>
#include <map>
#include <vector>

#include "server/report/charts/round_chart.h"
#include "server/report/page/page_frame.h"

namespace fedge::server {
namespace {

constexpr std::size_t kNamesShown = 12;
constexpr std::size_t kTracksShown = 200;
constexpr std::size_t kLines = 3;  // colours of the figures

// A track's last metrics, and the rounds it lasted.
struct Life {
  const TrackMetrics* last = nullptr;
  std::uint64_t first_round = 0;
  std::uint64_t last_round = 0;
  std::size_t rounds = 0;
};
using Lives = std::map<std::vector<std::string>, Life>;

Lives lives_of(std::span<const RoundMetrics> rounds) {
  Lives lives;
  for (const RoundMetrics& round : rounds)
    for (const TrackMetrics& track : round.tracks) {
      Life& life = lives[track.track.exclude];
      if (life.last == nullptr) life.first_round = round.round;
      life.last = &track;
      life.last_round = round.round;
      ++life.rounds;
    }
  return lives;
}

std::string listed(const std::vector<std::string>& names, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (count > kNamesShown) text += " and " + std::to_string(count - kNamesShown) + " more";
  return text;
}

std::string name_of(const TrackDescription& track) {
  return track.exclude.empty() ? "all clients" : "without " + listed(track.exclude, track.exclude.size());
}

// Returns a short name for a line's label.
std::string short_name(const TrackDescription& track) {
  if (track.exclude.empty()) return "all clients";
  const std::size_t more = track.exclude.size() - 1;
  return "without " + track.exclude.front() + (more > 0 ? " +" + std::to_string(more) : "");
}

// The three tracks with the most owners; among equals, the tracks that exclude fewer clients come first.
std::vector<const Lives::value_type*> largest(const Lives& lives) {
  std::vector<const Lives::value_type*> order;
  for (const auto& life : lives) order.push_back(&life);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
    return a->second.last->track.owner_count > b->second.last->track.owner_count;
  });
  if (order.size() > kLines) order.resize(kLines);
  return order;
}

// Draws a metric of the largest tracks over rounds.
std::string chart_of(std::span<const RoundMetrics> rounds, const Lives& lives, const std::string& title,
                     const std::string& y_title, Unit unit, double TrackMetrics::*figure_of) {
  Chart chart = chart_over_rounds(
      rounds, title + (lives.size() > kLines ? " of the three largest tracks" : " per track"), y_title, unit);
  for (const auto* life : largest(lives)) {
    Series series{short_name(life->second.last->track), {}, 1 + static_cast<int>(chart.series.size())};
    for (const RoundMetrics& round : rounds) {
      const auto track = std::ranges::find_if(
          round.tracks, [&](const TrackMetrics& metrics) { return metrics.track.exclude == life->first; });
      series.y.push_back(track == round.tracks.end() ? kNotMeasured : (*track).*figure_of);
    }
    chart.series.push_back(std::move(series));
  }
  return figure(chart);
}

}  // namespace

std::string track_section(std::span<const RoundMetrics> rounds) {
  const Lives lives = lives_of(rounds);
  if (lives.empty()) return "";
  std::string out =
      "<h2>Tracks</h2><p>A track is a model that the excluded clients do not influence. Members train the "
      "model, owners use it. A client may be a member of several tracks.</p><div class=\"charts\">\n" +
      chart_of(rounds, lives, "Accuracy", "accuracy", Unit::kPercent, &TrackMetrics::test_accuracy) +
      chart_of(rounds, lives, "Loss", "mean cross-entropy (nats)", Unit::kNone, &TrackMetrics::test_loss) +
      "</div>\n<div class=\"card scroll\"><table class=\"tracks\"><thead><tr>";
  for (const char* name : {"track", "owners", "members", "rounds", "accuracy", "loss", "model"})
    out += "<th>" + std::string(name) + "</th>";
  out += "</tr></thead><tbody>\n";
  std::size_t shown = 0;
  for (const auto& [exclude, life] : lives) {
    if (++shown > kTracksShown) break;
    const TrackMetrics& last = *life.last;
    const std::string owners =
        last.track.owner_count == 0 ? "none" : listed(last.track.owners, last.track.owner_count);
    out += "<tr><td>" + escape_html(name_of(last.track)) + "</td><td>" + escape_html(owners) + "</td><td>" +
           std::to_string(last.track.members) + "</td><td>" + std::to_string(life.first_round) + " to " +
           std::to_string(life.last_round) + "</td><td>" + with_unit(last.test_accuracy, Unit::kPercent) +
           "</td><td>" + with_unit(last.test_loss, Unit::kNone) + "</td><td title=\"" +
           escape_html(last.model_hash) + "\"><code>" + escape_html(last.model_hash.substr(0, 12)) +
           "</code></td></tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (lives.size() > kTracksShown)
    out += "<p>tracks.csv also lists " + std::to_string(lives.size() - kTracksShown) + " more tracks.</p>\n";
  return out;
}

}  // namespace fedge::server
