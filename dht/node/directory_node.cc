#include "dht/node/directory_node.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <chrono>
#include <utility>

#include "core/platform/calendar.h"
#include "protocol/session/loop.h"

namespace fedge::dht {
namespace {

constexpr std::chrono::milliseconds kTick{250};

}  // namespace

struct DirectoryNode::Timer {
  explicit Timer(boost::asio::io_context& io) : timer(io), resolver(io) {}
  protocol::Timer timer;
  boost::asio::ip::udp::resolver resolver;
  NetworkDirectory* directory = nullptr;  // null after destruction
};

DirectoryNode::DirectoryNode(std::unique_ptr<NetworkDirectory> directory, std::shared_ptr<Timer> timer)
    : directory_(std::move(directory)), timer_(std::move(timer)) {
  timer_->directory = directory_.get();
  tick(timer_);
}

DirectoryNode::~DirectoryNode() {
  timer_->directory = nullptr;
  timer_->timer.cancel();
  timer_->resolver.cancel();
}

Result<std::unique_ptr<DirectoryNode>> DirectoryNode::open(boost::asio::io_context& io,
                                                           const NodeSettings& settings) {
  NetworkOptions options{.listen = settings.listen,
                         .bootstrap = settings.bootstrap,
                         .known_nodes = settings.known_nodes,
                         .fixed = settings.fixed,
                         .limits = settings.limits};
  options.now = calendar_time;
  options.post = [&io](std::function<void()> what) { protocol::post(io, std::move(what)); };
  const auto timer = std::make_shared<Timer>(io);
  options.resolve = [timer](const protocol::Address& place, NetworkOptions::Resolved found) {
    timer->resolver.async_resolve(
        place.host, std::to_string(place.port),
        [found = std::move(found)](const auto& error, const auto& results) {
          std::vector<protocol::Address> addresses;
          if (!error)
            for (const auto& result : results)
              addresses.push_back({result.endpoint().address().to_string(), result.endpoint().port()});
          found(addresses);
        });
  };
  FEDGE_TRY(directory, open_network_directory(options));
  return std::unique_ptr<DirectoryNode>(new DirectoryNode(std::move(directory), timer));
}

void DirectoryNode::tick(const std::shared_ptr<Timer>& timer) {
  if (timer->directory == nullptr) return;
  timer->directory->advance(calendar_time());
  timer->timer.after(kTick, [timer] { tick(timer); });
}

std::uint64_t SequenceNumbers::next(Time calendar) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(calendar.time_since_epoch()).count();
  last_ = std::max(last_ + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0)));
  return last_;
}

}  // namespace fedge::dht
