#include "apps/directory/dht_doctor.h"

#include <chrono>

#include "apps/directory/visit.h"
#include "core/platform/calendar.h"

namespace fedge::apps {
namespace {

constexpr Duration kPatience = seconds(5);

using std::chrono::steady_clock;

std::string since(steady_clock::time_point start) {
  return std::to_string(
             std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - start).count()) +
         " ms";
}

DirectoryCheck check_bootstrap(const dht::NodeSettings& settings, const protocol::Address& address) {
  DirectoryCheck check{"bootstrap " + protocol::to_string(address), false, ""};
  dht::NodeSettings alone = settings;
  alone.bootstrap = {address};
  alone.known_nodes.clear();
  alone.listen.port = 0;
  const auto start = steady_clock::now();
  auto visit = Visit::begin(alone);
  if (!visit) {
    check.detail = visit.error().message;
    return check;
  }
  check.good = (*visit)->wait_for_contact(kPatience).has_value();
  check.detail = check.good ? "answers after " + since(start)
                            : "no answer within 5 s; check that a node runs there (fedge dht node) and that "
                              "firewalls let UDP through";
  return check;
}

DirectoryCheck check_record(Visit& visit, const dht::NodeSettings& settings) {
  DirectoryCheck check{"record", false, ""};
  const Time now = calendar_time();
  const SecretKey key = SecretKey::generate();
  const auto record =
      dht::make_record(key, {1, now + seconds(60)}, dht::NodeStatus{RunId(), {.round = 0, .labels = {}}});
  if (!record) {
    check.detail = record.error().message;
    return check;
  }
  const auto start = steady_clock::now();
  if (const auto put = visit.publish(*record, kPatience); !put) {
    check.detail = "publishing failed: " + put.error().message;
    return check;
  }
  dht::NodeSettings other = settings;
  other.known_nodes.clear();
  other.listen.port = 0;
  auto reader = Visit::begin(other);
  if (!reader || !(*reader)->wait_for_contact(kPatience)) {
    check.detail =
        "the test record was published, but a second node could not join the directory to look it up";
    return check;
  }
  const auto found = (*reader)->lookup(record->key, kPatience);
  check.good = found && found->size() == 1 && found->front() == *record;
  check.detail =
      check.good
          ? "the test record was published, and a second node found it after " + since(start)
          : "the test record was published, but a second node did not find it; check the clocks of the "
            "nodes";
  return check;
}

}  // namespace

std::vector<DirectoryCheck> examine_directory(const dht::NodeSettings& settings) {
  std::vector<DirectoryCheck> checks;
  for (const protocol::Address& address : settings.bootstrap)
    checks.push_back(check_bootstrap(settings, address));
  auto visit = Visit::begin(settings);
  if (!visit) {
    checks.push_back({"listen", false, visit.error().message});
    return checks;
  }
  checks.push_back({"listen", true, "UDP port " + std::to_string((*visit)->directory().port())});
  const auto contact = (*visit)->wait_for_contact(kPatience);
  const auto status = (*visit)->directory().status();
  checks.push_back({"nodes", contact.has_value(),
                    contact ? std::to_string(status.good_nodes) + " answer, " +
                                  std::to_string(status.dubious_nodes) + " more are known"
                            : contact.error().message});
  if (!contact) return checks;
  std::string seen;
  for (const std::string& address : status.public_addresses) seen += (seen.empty() ? "" : ", ") + address;
  checks.push_back(
      {"seen as", true, seen.empty() ? "no node has reported this machine's address yet" : seen});
  checks.push_back(check_record(**visit, settings));
  return checks;
}

}  // namespace fedge::apps
