// LiveKeeper keeps the coordinator's Live up to date: each second it publishes the runs' progress and counts
// the connections' traffic, and every few seconds a thread of its own writes fleet.db. Use it on the
// io_context's thread. Private to coordinator/.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/event.h"
#include "protocol/messages.h"
#include "protocol/session/loop.h"
#include "server/coordinator/peers.h"
#include "server/live/fleet_file.h"
#include "server/live/live.h"

namespace fedge::server {

class LiveKeeper : public std::enable_shared_from_this<LiveKeeper> {
 public:
  LiveKeeper(boost::asio::io_context& io, const std::filesystem::path& data_directory, const Peers& peers,
             std::function<void(const Event&)> report);

  const std::shared_ptr<Live>& live() const { return live_; }
  // Reads fleet.db; sets a damaged one aside and reports that. `each_second` is called from then on.
  void start(std::function<void()> each_second);
  void connected(ClientId client, const protocol::Link& link, const protocol::Hello& hello);
  void disconnected(ClientId client, const protocol::Link& link);
  void ended(RunNumber run, const WatchedTask& task);
  // Ends the timer.
  void stop();
  // Writes what has changed, and ends the thread.
  void shut_down();

 private:
  void look();
  void count(ClientId client, const protocol::Link& link);
  void write(bool all);

  void open();
  // The last write has ended.
  void written(const std::vector<ClientId>& clients, const Result<void>& outcome);

  const Peers& peers_;
  std::filesystem::path data_directory_;
  std::function<void(const Event&)> report_;
  std::shared_ptr<Live> live_ = std::make_shared<Live>();
  std::unique_ptr<FleetFile> file_;
  std::map<ClientId, protocol::Traffic> counted_;  // of the present connections
  protocol::Timer timer_;
  std::function<void()> each_second_;
  std::uint64_t looks_ = 0;
  std::chrono::steady_clock::time_point due_ = std::chrono::steady_clock::now();  // of the next look
  boost::asio::io_context& io_;
  bool writing_ = false;     // a write is in progress
  bool failing_ = false;     // the last write failed
  protocol::Worker writer_;  // after what its jobs use
};

}  // namespace fedge::server
