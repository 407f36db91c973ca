#include "aggregation/tracks/policy.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "core/config/suggestion.h"
#include "core/text.h"

namespace fedge::aggregation {
namespace {

using config::Reader;

const std::vector<std::string> kKinds = {"full", "partial_data", "inbound", "outbound", "bidirectional"};
constexpr std::int64_t kMaxRound = std::numeric_limits<std::uint32_t>::max();

// Quotes a string for a message: it may be long and contain any bytes.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  if (!check_text(text, text.size(), "")) return "a string with control characters";
  if (text.size() > kLongest) return "a string of " + std::to_string(text.size()) + " bytes";
  return "\"" + std::string(text) + "\"";
}

// Finds clients by name. Borrows the policy's names.
class Directory {
 public:
  explicit Directory(const Policy& policy) : clients_(policy.clients), names_(policy.names) {
    for (std::uint32_t id = 0; id < names_.size(); ++id) ids_.emplace(names_[id], id);
  }

  // Reads a list of clients' names: at least one, each known and unique. Ascending.
  std::vector<ClientId> read(Reader& reader, const std::string& key, const std::vector<std::string>& list) {
    std::vector<ClientId> ids;
    if (list.empty()) reader.fail(key, "is an empty list");
    for (const std::string& name : list) {
      const std::optional<ClientId> id = find(name);
      if (!id) {
        reader.fail(key, complaint(name));
        return {};
      }
      ids.push_back(*id);
    }
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice == ids.end()) return ids;
    reader.fail(key, "lists " +
                         shown(names_.empty() ? std::to_string(twice->value()) : names_[twice->value()]) +
                         " twice");
    return {};
  }

 private:
  std::optional<ClientId> find(const std::string& name) const {
    if (!names_.empty()) {
      const auto it = ids_.find(name);
      return it == ids_.end() ? std::nullopt : std::optional(ClientId(it->second));
    }
    std::uint32_t id = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), id);
    // Only the canonical spelling of a number is a client's name: not "01".
    if (parsed.ec != std::errc() || id >= clients_ || std::to_string(id) != name) return std::nullopt;
    return ClientId(id);
  }

  std::string complaint(const std::string& name) {
    std::string text = shown(name) + " is not a client of this policy";
    if (names_.empty()) return text + " (its clients are \"0\" to \"" + std::to_string(clients_ - 1) + "\")";

    constexpr std::size_t kLongest = 64;
    // Computes no more suggestions than errors are shown.
    if (suggestions_ == config::kMaxShownProblems || name.size() > kLongest) return text;
    ++suggestions_;
    const auto close = config::suggestion(name, names_);
    return close ? text + ", did you mean " + shown(*close) + "?" : text;
  }

  std::size_t clients_;
  const std::vector<std::string>& names_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::size_t suggestions_ = 0;
};

void read_names(Reader& reader, Policy& policy) {
  policy.names = reader.texts("clients", std::nullopt, "");
  policy.clients = policy.names.size();
  if (policy.names.empty()) reader.fail("clients", "is an empty list");
  if (policy.names.size() > kMaxPolicyClients)
    reader.fail("clients", "lists " + std::to_string(policy.names.size()) + " clients, but at most " +
                               std::to_string(kMaxPolicyClients) + " are allowed");
  std::unordered_map<std::string_view, std::size_t> seen;
  for (const std::string& name : policy.names) {
    if (name.empty()) reader.fail("clients", "contains an empty name");
    const auto fit = check_text(name, kMaxClientName, "one of the names");
    if (!fit) reader.fail("clients", fit.error().message);
    if (!seen.emplace(name, seen.size()).second) reader.fail("clients", "lists " + shown(name) + " twice");
  }
}

// `in_run`: the run's number of clients; empty for a separate policy file.
void read_clients(Reader& reader, Policy& policy, std::optional<std::size_t> in_run) {
  const std::int64_t most = kMaxPolicyClients;
  const bool named = reader.has_list("clients");
  if (named)
    read_names(reader, policy);
  else if (in_run)
    policy.clients = static_cast<std::size_t>(reader.integer(
        "clients", 0, {0, most},
        "Number of clients, named \"0\", \"1\", ..., or a list of their names. 0: data.partition.clients."));
  else
    policy.clients = static_cast<std::size_t>(
        reader.integer("clients", std::nullopt, {1, most},
                       "Number of clients, named \"0\", \"1\", ..., or a list of their names."));
  if (!in_run || policy.clients == *in_run) return;
  if (policy.clients != 0)
    reader.fail("clients", (named ? "lists " : "is ") + std::to_string(policy.clients) +
                               ", but the run has " + std::to_string(*in_run) + " clients");
  else if (*in_run > kMaxPolicyClients && reader.has("disagreement"))
    reader.fail("disagreement", "a run of " + std::to_string(*in_run) +
                                    " clients cannot have disagreements; the limit is " +
                                    std::to_string(kMaxPolicyClients) + " clients");
  policy.clients = *in_run;
}

// Refuses a key that has no effect with this kind.
void belongs(Reader& reader, const std::string& key, DisagreementKind kind, const std::string& owners) {
  if (reader.has(key))
    reader.refuse(key, "has no effect with kind = \"" + kKinds[static_cast<std::size_t>(kind)] +
                           "\"; it applies only to " + owners);
}

void read_rounds(Reader& reader, Disagreement& out) {
  out.from_round = RoundNumber(static_cast<std::uint32_t>(
      reader.integer("from_round", 1, {1, kMaxRound}, "First round in which the disagreement applies.")));
  const std::int64_t until = reader.integer(
      "until_round", 0, {1, kMaxRound},
      "Last round in which the disagreement applies. If not set, the disagreement never ends.");
  if (until == 0) return;
  out.until_round = RoundNumber(static_cast<std::uint32_t>(until));
  if (*out.until_round < out.from_round)
    reader.fail("until_round", std::to_string(until) + " is before from_round, which is " +
                                   std::to_string(out.from_round.value()));
}

Disagreement read_disagreement(Reader& reader, Directory& directory) {
  Disagreement out;
  out.kind = static_cast<DisagreementKind>(
      reader.choice("kind", kKinds, std::nullopt,
                    "What the clients want: to take no part (full), to withhold samples (partial_data), not "
                    "to be influenced by the clients in against (inbound), not to influence the clients in "
                    "against (outbound), or inbound and outbound together (bidirectional)."));
  out.clients = directory.read(reader, "clients",
                               reader.texts("clients", std::nullopt, "Names of the clients that disagree."));
  const bool edges = out.kind != DisagreementKind::kFull && out.kind != DisagreementKind::kPartialData;
  const auto against =
      reader.texts("against", std::vector<std::string>{},
                   "inbound, outbound, bidirectional: names of the clients that the disagreement excludes.");
  if (!edges)
    belongs(reader, "against", out.kind, "inbound, outbound and bidirectional");
  else if (!reader.has("against"))
    reader.fail("against",
                "is required for this kind: list the clients whose models or updates are excluded");
  else
    out.against = directory.read(reader, "against", against);
  read_rounds(reader, out);
  const bool partial = out.kind == DisagreementKind::kPartialData;
  if (partial) belongs(reader, "deep", out.kind, "full, inbound, outbound and bidirectional");
  out.deep = reader.boolean(
      "deep", false,
      "all kinds but partial_data: whether the contributions before from_round are removed as well.");
  if (!partial) belongs(reader, "withheld", out.kind, "partial_data");
  const double withheld = reader.number(
      "withheld", 0.5, {0, 1},
      "partial_data: fraction of its samples that a client withholds. It must be above 0 and below 1.");
  if (withheld <= 0 || withheld >= 1) reader.fail("withheld", "must be above 0 and below 1");
  if (partial) out.withheld = withheld;
  return out;
}

Policy read(Reader& reader, std::optional<std::size_t> in_run) {
  Policy policy;
  read_clients(reader, policy, in_run);
  policy.strict = reader.boolean(
      "strict", false,
      "Whether a client trains only for tracks that exclude every client that it excludes itself.");
  policy.keep_orphan_global =
      reader.boolean("keep_orphan_global", false,
                     "Whether the track that excludes no client is trained even if no client uses it.");
  std::vector<Reader> tables = reader.tables("disagreement",
                                             "The disagreements. Each names clients that must not share a "
                                             "model, and the rounds in which it applies.");
  if (tables.size() > kMaxDisagreements) {
    reader.fail("disagreement", "lists " + std::to_string(tables.size()) + " disagreements, but at most " +
                                    std::to_string(kMaxDisagreements) + " are allowed");
    return policy;
  }
  Directory directory(policy);
  std::size_t pairs = 0;
  for (Reader& table : tables) {
    policy.disagreements.push_back(read_disagreement(table, directory));
    const Disagreement& last = policy.disagreements.back();
    pairs += last.clients.size() * std::max<std::size_t>(last.against.size(), 1);
    if (pairs > kMaxDisagreementPairs)
      table.fail("clients",
                 "this disagreement and the earlier ones name too many pairs of a client and a client that "
                 "it excludes; the limit is " +
                     std::to_string(kMaxDisagreementPairs));
    reader.adopt(table);
  }
  return policy;
}

config::Value client_names(const Policy& policy, const std::vector<ClientId>& ids) {
  config::Array list;
  for (const ClientId id : ids) list.push_back({policy.name(id), ""});
  return {std::move(list), ""};
}

config::Value to_table(const Policy& policy, const Disagreement& disagreement) {
  config::Table table;
  table["kind"] = {kKinds[static_cast<std::size_t>(disagreement.kind)], ""};
  table["clients"] = client_names(policy, disagreement.clients);
  if (!disagreement.against.empty()) table["against"] = client_names(policy, disagreement.against);
  if (disagreement.from_round != RoundNumber(1))
    table["from_round"] = {std::int64_t{disagreement.from_round.value()}, ""};
  if (disagreement.until_round) table["until_round"] = {std::int64_t{disagreement.until_round->value()}, ""};
  if (disagreement.deep) table["deep"] = {true, ""};
  if (disagreement.kind == DisagreementKind::kPartialData) table["withheld"] = {disagreement.withheld, ""};
  return {std::move(table), ""};
}

}  // namespace

std::string Policy::name(ClientId client) const {
  FEDGE_CHECK(client.value() < clients, "no client of this policy");
  return names.empty() ? std::to_string(client.value()) : names[client.value()];
}

Result<Policy> read_policy(const config::Document& document) {
  Reader root(document.root, "", document.name);
  Policy policy = read(root, std::nullopt);
  FEDGE_TRY_VOID(root.finish());
  return policy;
}

Policy read_policy(Reader& section, std::size_t clients) { return read(section, clients); }

std::string to_toml(const Policy& policy) {
  config::Table table;
  if (policy.names.empty()) {
    table["clients"] = {static_cast<std::int64_t>(policy.clients), ""};
  } else {
    table["clients"] = {config::Array(), ""};
    for (const std::string& name : policy.names)
      std::get<config::Array>(table["clients"].data).push_back({name, ""});
  }
  if (policy.strict) table["strict"] = {true, ""};
  if (policy.keep_orphan_global) table["keep_orphan_global"] = {true, ""};
  config::Array disagreements;
  for (const Disagreement& each : policy.disagreements) disagreements.push_back(to_table(policy, each));
  if (!disagreements.empty()) table["disagreement"] = {std::move(disagreements), ""};
  return config::canonical_toml(table);
}

const std::string& name_of(DisagreementKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }

}  // namespace fedge::aggregation
