#include "lab/attack/attack.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/check.h"

namespace fedge::lab {
namespace {

struct NamedAttack {
  Attack attack;
  const char* name;
};
constexpr NamedAttack kAttacks[] = {{Attack::kCrowd, "crowd"},
                                    {Attack::kEclipse, "eclipse"},
                                    {Attack::kPoison, "poison"},
                                    {Attack::kReflect, "reflect"}};

constexpr std::size_t kPaths = 3;
constexpr std::size_t kBootstraps = 3;

struct Word {
  const char* name;
  void (*add)(Defence& defence);
};
constexpr Word kWords[] = {
    {"ids", [](Defence& defence) { defence.overlay.bound_ids = true; }},
    {"groups", [](Defence& defence) { defence.overlay.per_group = 1; }},
    {"paths", [](Defence& defence) { defence.overlay.paths = kPaths; }},
    {"stable", [](Defence& defence) { defence.overlay.keep_old = true; }},
    {"all-holders", [](Defence& defence) { defence.overlay.read_all = true; }},
    {"tokens", [](Defence& defence) { defence.overlay.tokens = true; }},
    {"signatures", [](Defence& defence) { defence.signatures = true; }},
    {"bootstraps", [](Defence& defence) { defence.bootstraps = kBootstraps; }},
    {"saved", [](Defence& defence) { defence.saved_table = true; }},
};
constexpr const char* kNotInOpenDht[] = {"ids", "groups", "paths"};

// Adds the defence with this name; returns false for an unknown name.
bool add(Defence& defence, const std::string& text) {
  bool known = text == "none";
  for (const Word& word : kWords) {
    const bool in_opendht =
        std::none_of(std::begin(kNotInOpenDht), std::end(kNotInOpenDht),
                     [&](const char* other) { return std::string_view(word.name) == other; });
    if (text != word.name && text != "all" && !(text == "opendht" && in_opendht)) continue;
    word.add(defence);
    known = true;
  }
  return known;
}

}  // namespace

const char* to_string(Attack attack) {
  for (const NamedAttack& named : kAttacks)
    if (named.attack == attack) return named.name;
  FEDGE_CHECK(false, "an attack of no known kind");
}

Result<Attack> attack_of(const std::string& name) {
  for (const NamedAttack& named : kAttacks)
    if (name == named.name) return named.attack;
  return invalid("unknown attack \"" + name + "\"; use crowd, eclipse, poison or reflect");
}

Result<Defence> defence_of(const std::string& text) {
  Defence defence;
  defence.overlay.keep_old = false;  // part of the papers, so not in "none"
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!add(defence, word))
      return invalid("--protect: unknown word \"" + word +
                     "\"; use none, all, opendht, or a comma-separated list of ids, groups, paths, stable, "
                     "all-holders, tokens, signatures, bootstraps and saved");
    begin = end + 1;
  }
  return defence;
}

Result<void> check_attack(const AttackOptions& options) {
  if (options.nodes < 100 || options.nodes > 100'000)
    return invalid(dht::must_be("--nodes", "100 to 100000"));
  if (!(options.hostile >= 0 && options.hostile <= 0.9))
    return invalid(dht::must_be("--hostile", "0 to 0.9"));
  if (options.groups < 1 || options.groups > 100'000) return invalid(dht::must_be("--groups", "1 to 100000"));
  if (options.ground_bits > 40) return invalid(dht::must_be("--ground-bits", "0 to 40"));
  if (options.replication < 1 || options.replication > 20)
    return invalid(dht::must_be("--replication", "1 to 20"));
  if (options.rounds < 10 || options.rounds > 10'000) return invalid(dht::must_be("--rounds", "10 to 10000"));
  return {};
}

const std::vector<AttackFigure>& attack_figures() {
  static const std::vector<AttackFigure> figures = {
      {"success_percent", "success, %", &AttackResult::success, 100, 1},
      {"stale_percent", "outdated record accepted, %", &AttackResult::stale, 100, 1},
      {"forged_percent", "forged record accepted, %", &AttackResult::forged, 100, 1},
      {"kept_percent", "victims with an honest node near every key, %", &AttackResult::kept, 100, 1},
      {"honest_contacts_percent", "honest contacts of victims, %", &AttackResult::honest_contacts, 100, 1},
      {"amplification", "bytes at the victim per byte sent", &AttackResult::amplification, 1, 2},
      {"rubbish_kb", "junk data stored per honest node, KB", &AttackResult::rubbish, 1e-3, 1},
      {"latency_ms", "mean latency of successful lookups, ms", &AttackResult::latency_ms, 1, 0},
      {"messages", "messages per lookup", &AttackResult::messages, 1, 1},
      {"traffic_kb", "KB sent per honest node and round", &AttackResult::traffic, 1e-3, 2}};
  return figures;
}

}  // namespace fedge::lab
