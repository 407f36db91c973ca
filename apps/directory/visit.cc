#include "apps/directory/visit.h"

#include <chrono>
#include <optional>
#include <utility>

namespace fedge::apps {
namespace {

Error nobody_answers() {
  return {ErrorCode::kUnavailable,
          "no node of the directory answers; check the addresses of --bootstrap with: fedge dht doctor"};
}

}  // namespace

Result<std::unique_ptr<Visit>> Visit::begin(const dht::NodeSettings& settings) {
  std::unique_ptr<Visit> visit(new Visit(std::make_unique<boost::asio::io_context>()));
  FEDGE_TRY(node, dht::DirectoryNode::open(*visit->io_, settings));
  visit->node_ = std::move(node);
  return visit;
}

bool Visit::run_until(const std::function<bool()>& condition, Duration patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    io_->run_for(std::chrono::milliseconds(20));
  }
  return true;
}

Result<void> Visit::wait_for_contact(Duration patience) {
  if (run_until([this] { return directory().status().good_nodes > 0; }, patience)) return {};
  return nobody_answers();
}

Result<std::vector<dht::Record>> Visit::lookup(const dht::Key& key, Duration patience) {
  const auto answer = std::make_shared<std::optional<Result<std::vector<dht::Record>>>>();
  directory().lookup(key, [answer](const Result<std::vector<dht::Record>>& found) { *answer = found; });
  if (!run_until([&] { return answer->has_value(); }, patience)) return nobody_answers();
  return **answer;
}

Result<void> Visit::publish(const dht::Record& record, Duration patience) {
  const auto answer = std::make_shared<std::optional<Result<void>>>();
  directory().publish(record, [answer](const Result<void>& kept) { *answer = kept; });
  if (!run_until([&] { return answer->has_value(); }, patience)) return nobody_answers();
  return **answer;
}

}  // namespace fedge::apps
