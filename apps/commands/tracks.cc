#include "apps/commands/tracks.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

#include "aggregation/tracks/resolution.h"
#include "apps/common.h"
#include "core/text.h"
#include "learn/spec.h"

namespace fedge::apps {
namespace {

using aggregation::Policy;
using aggregation::Resolution;

// The number of clients of a run; reads only the section [data].
Result<std::size_t> clients_of(const config::Document& run) {
  config::Table data;
  if (const auto section = run.root.find("data"); section != run.root.end()) data.insert(*section);
  config::Reader root(data, "", run.name);
  const std::size_t clients = learn::read_task(root).data.partition.clients;
  FEDGE_TRY_VOID(root.finish());
  return clients;
}

Result<Policy> read_tracks(const config::Document& document) {
  const auto section = document.root.find("tracks");
  if (section == document.root.end() || !std::holds_alternative<config::Table>(section->second.data))
    return aggregation::read_policy(document);
  FEDGE_TRY(clients, clients_of(document));
  config::Reader root(document.root, "", document.name);
  config::Reader tracks = root.section("tracks");
  Policy policy = aggregation::read_policy(tracks, clients);
  tracks.ignore("lifting_rounds");
  root.adopt(tracks);
  for (const auto& [key, value] : document.root) root.ignore(key);
  FEDGE_TRY_VOID(root.finish());
  return policy;
}

// Sorts clients by their names.
class Names {
 public:
  explicit Names(const Policy& policy) : rank_(policy.clients) {
    for (std::uint32_t id = 0; id < policy.clients; ++id) names_.push_back(policy.name(ClientId(id)));
    std::vector<std::uint32_t> order(policy.clients);
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return names_[a] < names_[b]; });
    for (std::uint32_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
  }

  const std::string& operator[](ClientId client) const { return names_[client.value()]; }

  std::vector<ClientId> in_order(std::span<const ClientId> clients) const {
    std::vector<ClientId> sorted(clients.begin(), clients.end());
    std::sort(sorted.begin(), sorted.end(), [&](ClientId a, ClientId b) { return rank(a) < rank(b); });
    return sorted;
  }

  // The tracks, sorted by the names in their patterns.
  std::vector<std::size_t> in_order(const Resolution& resolution) const {
    std::vector<std::vector<ClientId>> patterns;
    for (std::size_t t = 0; t < resolution.tracks(); ++t) patterns.push_back(in_order(resolution.pattern(t)));
    std::vector<std::size_t> order(patterns.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::ranges::lexicographical_compare(patterns[a], patterns[b],
                                                  [&](ClientId x, ClientId y) { return rank(x) < rank(y); });
    });
    return order;
  }

 private:
  std::uint32_t rank(ClientId client) const { return rank_[client.value()]; }

  std::vector<std::string> names_;
  std::vector<std::uint32_t> rank_;  // by client: position of its name among all names
};

std::string json_list(const Names& names, std::span<const ClientId> clients) {
  std::string text = "[";
  for (const ClientId client : names.in_order(clients))
    text += (text.size() > 1 ? "," : "") + json_text(names[client]);
  return text + "]";
}

void print_resolution_json(const Resolution& resolution, const Policy& policy, std::uint32_t round,
                           std::FILE* out) {
  const Names names(policy);
  std::fprintf(out, "{\"round\":%u,\"load\":%llu,\"tracks\":[", round,
               static_cast<unsigned long long>(resolution.load()));
  const char* comma = "";
  for (const std::size_t t : names.in_order(resolution)) {
    std::fprintf(out, "%s{\"exclude\":%s,\"members\":%s,\"owners\":%s}", comma,
                 json_list(names, resolution.pattern(t)).c_str(),
                 json_list(names, resolution.members(t)).c_str(),
                 json_list(names, resolution.owners(t)).c_str());
    comma = ",";
  }
  std::fprintf(out, "],\"withdrawn\":%s}\n", json_list(names, resolution.withdrawn()).c_str());
}

constexpr std::size_t kShown = 6;

// "none", "a, b", or the beginning of a long list: "a, b, c, d, e, f, ... (17)". `first` must have at least
// min(kShown, count) clients.
std::string short_list(const Policy& policy, std::span<const ClientId> first, std::size_t count) {
  if (count == 0) return "none";
  std::string text = policy.name(first.front());
  for (std::size_t i = 1; i < std::min(kShown, count); ++i) text += ", " + policy.name(first[i]);
  if (count > kShown) text += ", ... (" + std::to_string(count) + ")";
  return text;
}

std::string short_list(const Policy& policy, std::span<const ClientId> clients) {
  return short_list(policy, clients, clients.size());
}

// Does not build the full lists: there may be a million members for each of thousands of tracks.
std::string short_members(const Policy& policy, const Resolution& resolution, std::size_t track) {
  const std::size_t count = resolution.member_count(track);
  if (count <= kShown) return short_list(policy, resolution.members(track));
  std::vector<ClientId> first;
  for (std::uint32_t c = 0; first.size() < kShown; ++c)
    if (resolution.is_member(track, ClientId(c))) first.emplace_back(c);
  return short_list(policy, first, count);
}

// Prints lists and tracks in the policy's order of clients.
void print_text(const Resolution& resolution, const Policy& policy, std::uint32_t round, std::FILE* out) {
  std::fprintf(out, "round %u: %zu %s, %llu trainings by %zu clients\n", round, resolution.tracks(),
               resolution.tracks() == 1 ? "track" : "tracks",
               static_cast<unsigned long long>(resolution.load()),
               resolution.clients() - resolution.withdrawn().size());
  if (!resolution.withdrawn().empty())
    std::fprintf(out, "withdrawn: %s\n", short_list(policy, resolution.withdrawn()).c_str());
  std::fprintf(out, "\n%-34s  %-34s  %s\n", "excludes", "used by", "trained by");
  for (std::size_t t = 0; t < resolution.tracks(); ++t)
    std::fprintf(out, "%-34s  %-34s  %s\n", short_list(policy, resolution.pattern(t)).c_str(),
                 short_list(policy, resolution.owners(t)).c_str(),
                 short_members(policy, resolution, t).c_str());
}

}  // namespace

Result<void> resolve_tracks(const TracksOptions& options, std::FILE* out) {
  FEDGE_TRY(document, load_document(options.policy, {}));
  FEDGE_TRY(policy, read_tracks(document));
  const Resolution resolution = aggregation::resolve(
      aggregation::exclusions_in(policy, RoundNumber(options.round)),
      {.strict = options.strict || policy.strict, .keep_orphan_global = policy.keep_orphan_global});
  (options.json ? print_resolution_json : print_text)(resolution, policy, options.round, out);
  if (std::fflush(out) != 0 || std::ferror(out) != 0)
    return Error{ErrorCode::kUnavailable, std::string("cannot write the result: ") + std::strerror(errno)};
  return {};
}

}  // namespace fedge::apps
