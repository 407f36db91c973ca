// Clients send their updates to the coordinator, which folds them.
#include "server/conductor/route.h"

namespace fedge::server {
namespace {

class DirectRoute final : public Route {
 public:
  explicit DirectRoute(const RouteParts& parts) : parts_(parts) {}

  void fetch(const RunEngine::Fetch& offered) override { parts_.ports.updates->fetch(offered); }
  void discard(ClientId client, TaskId task) override { parts_.ports.updates->discard(client, task); }
  void fold(const RunEngine::Fold& accepted) override { parts_.ports.aggregate->fold(accepted); }
  void close(const RunEngine::CloseRound& turn) override { parts_.host.close(turn, Folded{}); }

 private:
  RouteParts parts_;
};

}  // namespace

std::unique_ptr<Route> make_direct_route(const RouteParts& parts) {
  return std::make_unique<DirectRoute>(parts);
}

}  // namespace fedge::server
