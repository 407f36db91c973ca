// Measures what an update costs the coordinator. A thousand clients in one process take part in rounds of a
// running fedge-coordinator over real links. Each client fetches the model, offers its own update and waits
// for the verdict; no client trains. bench/daemons/rounds.sh starts both.
// With `restart`, the program kills the coordinator when a tenth of the second round's updates have been
// accepted, and measures the time until updates are accepted again. `rounds.sh CLIENTS restart` restarts the
// coordinator at the same address. Clients reconnect with a real client's back-off.
//   swarm_rounds DATA_DIR PID COUNT ROUNDS [restart]
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cmath>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/daemons/process.h"
#include "bench/daemons/swarm_client.h"
#include "client/client_engine.h"
#include "client/handshake.h"
#include "core/rng.h"
#include "protocol/chunks/chunk_store.h"
#include "server/data_directory.h"

namespace {

using namespace fedge;
using namespace fedge::bench;

constexpr std::size_t kConnecting = 12;  // not yet admitted; the coordinator accepts 16 from an address

constexpr std::uint32_t kRoundOfKill = 2;

class Nowhere final : public protocol::ChunkSink {
 public:
  bool has(std::size_t) const override { return false; }
  Result<void> write(std::size_t, std::span<const std::byte>) override { return {}; }
};

// An update of small random values. Only the first value differs between clients, so that no two updates are
// the same object.
class Update final : public protocol::ChunkSource {
 public:
  Update(std::shared_ptr<const std::vector<float>> base, float first, std::uint32_t chunk_size)
      : base_(std::move(base)), first_(first), chunk_size_(chunk_size) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    std::memcpy(out.data(), std::as_bytes(std::span(*base_)).data() + chunk * chunk_size_ + from, out.size());
    if (chunk == 0 && from == 0) std::memcpy(out.data(), &first_, sizeof first_);
    return {};
  }

 private:
  std::shared_ptr<const std::vector<float>> base_;
  float first_;
  std::uint32_t chunk_size_;
};

struct Round {
  Clock::time_point begun{};
  Clock::time_point ended{};
  std::size_t verdicts = 0;
  Process before;
  Process after;
};

class Measurement {
 public:
  Measurement(const std::string& directory, std::string pid, std::size_t count, std::size_t rounds)
      : pid_(std::move(pid)), count_(count), wanted_(rounds), links_(count) {
    const auto key = server::open_coordinator_key(directory);
    if (!key) give_up(key.error().message);
    coordinator_ = key->public_key();
    const auto address = server::last_address(directory);
    if (!address) give_up(address.error().message);
    address_ = *address;
  }

  void run() {
    for (std::size_t client = 0; client < count_; ++client) waiting_.push_back(client);
    connect_more();
    while (rounds_[static_cast<std::uint32_t>(wanted_)].verdicts < count_) io_.run_one();
    std::printf("round  updates  seconds  updates/s  MB/s up  processor ms/update  RSS MiB  peak MiB\n");
    for (const auto& [number, round] : rounds_) {
      if (round.verdicts < count_) continue;
      const double seconds = std::chrono::duration<double>(round.ended - round.begun).count();
      const double updates = static_cast<double>(round.verdicts);
      std::printf("%5u  %7zu  %7.2f  %9.0f  %7.0f  %19.2f  %7.1f  %8.1f\n", number, round.verdicts, seconds,
                  updates / seconds, updates * static_cast<double>(bytes_) / seconds / 1e6,
                  1e3 * (round.after.cpu_seconds - round.before.cpu_seconds) / updates,
                  round.after.resident_kib / 1024, round.after.peak_kib / 1024);
    }
  }

  // Runs until the round in which the coordinator is killed has ended.
  void run_with_restart() {
    kills_ = true;
    for (std::size_t client = 0; client < count_; ++client) waiting_.push_back(client);
    connect_more();
    while (!killed_ || !ended_) io_.run_one();
    const auto after = [&](const std::optional<Clock::time_point>& time) {
      if (!time) return std::string("never");
      char text[32];
      std::snprintf(text, sizeof text, "%.2f s", std::chrono::duration<double>(*time - *killed_).count());
      return std::string(text);
    };
    std::printf("%zu clients, killed when %zu had been told that their updates are accepted\n", count_,
                accepted_before_);
    std::printf("after the kill: first client let in %s, all %s; first update accepted %s, round over %s\n",
                after(first_back_).c_str(), after(all_back_).c_str(), after(first_accepted_).c_str(),
                after(ended_).c_str());
  }

 private:
  void connect_more() {
    while (connecting_ < kConnecting && !waiting_.empty()) {
      ++connecting_;
      connect(waiting_.front());
      waiting_.pop_front();
    }
  }
  // Reconnects with the back-off of client::ClientEngine.
  void come_back(std::size_t client) {
    const client::BackoffRules rules;
    const double cap =
        std::min(to_seconds(rules.longest), to_seconds(rules.first) * std::exp2(attempts_[client]++));
    const auto timer = std::make_shared<boost::asio::steady_timer>(io_);
    timer->expires_after(std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(cap * (1 - rng_.uniform()))));
    timer->async_wait([this, client, timer](const boost::system::error_code&) {
      waiting_.push_back(client);
      connect_more();
    });
  }
  void let_in(std::size_t client) {
    attempts_[client] = 0;
    --connecting_;
    if (killed_ && !first_back_) first_back_ = Clock::now();
    if (killed_ && ++back_ == count_) all_back_ = Clock::now();
    connect_more();
  }
  void not_let_in(std::size_t client, const std::string& why) {
    if (!killed_) give_up(why);
    --connecting_;
    come_back(client);
    connect_more();
  }
  void connect(std::size_t client) {
    const auto identity = protocol::make_tls_identity(key_of(client));
    if (!identity) give_up(identity.error().message);
    protocol::connect(io_, *identity, address_, coordinator_,
                      [this, client](Result<std::shared_ptr<protocol::Link>> link) {
                        if (!link) return not_let_in(client, link.error().message);
                        links_[client] = *link;
                        client::greet(*link, "swarm", "", [this, client](Result<protocol::Welcome> welcome) {
                          if (!welcome) return not_let_in(client, welcome.error().message);
                          take_part(client);
                        });
                      });
  }
  void take_part(std::size_t client) {
    links_[client]->set_callbacks(
        {.on_message = [this, client](const protocol::Message& message) { received(client, message); },
         .on_closed =
             [this, client](const Error& error) {
               if (killed_) return come_back(client);
               if (rounds_[static_cast<std::uint32_t>(wanted_)].verdicts < count_) give_up(error.message);
             }});
    let_in(client);
  }
  void received(std::size_t client, const protocol::Message& message) {
    if (const auto* run = std::get_if<protocol::RunDescription>(&message))
      links_[client]->send(protocol::RunAnswer{run->run, true, SampleCount(6), {}, {}});
    else if (const auto* request = std::get_if<protocol::TrainRequest>(&message))
      work(client, *request);
    else if (const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message))
      judged(*verdict);
    else if (const auto* goodbye = std::get_if<protocol::Goodbye>(&message))
      links_[client]->close(goodbye->reason);
  }
  void work(std::size_t client, const protocol::TrainRequest& request) {
    if (killed_ && request.round.value() > kRoundOfKill) {
      if (!ended_) ended_ = Clock::now();
      return;
    }
    Round& round = rounds_[request.round.value()];
    if (round.begun == Clock::time_point()) {
      round.begun = Clock::now();
      round.before = look_at(pid_);
    }
    links_[client]->fetch(request.model, std::make_shared<Nowhere>(),
                          [this, client, request](Result<void> all) {
                            if (!all && !killed_) give_up(all.error().message);
                            if (all) offer(client, request);
                          });
  }
  void offer(std::size_t client, const protocol::TrainRequest& request) {
    const protocol::Manifest manifest = manifest_of(client, request);
    const auto update =
        std::make_shared<Update>(base_, static_cast<float>(client) * 1e-6F, manifest.chunk_size);
    links_[client]->serve(manifest, update);
    links_[client]->send(protocol::UpdateOffer{.run = request.run,
                                               .round = request.round,
                                               .update = manifest,
                                               .samples = SampleCount(6),
                                               .steps = 1,
                                               .train_loss = 1,
                                               .norm = 0.1,
                                               .loss_rms = 1});
  }
  // Hashes only the first chunk: the other chunks are the same for all clients.
  protocol::Manifest manifest_of(std::size_t client, const protocol::TrainRequest& request) {
    const auto own = [&](std::vector<float> values) {
      return protocol::make_manifest(request.model.layout, request.coverage, std::as_bytes(std::span(values)),
                                     request.model.chunk_size);
    };
    if (!base_) {
      std::vector<float> values(request.model.payload_size / sizeof(float));
      Rng rng(7);
      for (float& value : values) value = static_cast<float>(rng.normal()) * 1e-4F;
      base_ = std::make_shared<const std::vector<float>>(std::move(values));
      shape_ = own(*base_);
      bytes_ = shape_.payload_size;
    }
    protocol::Manifest manifest = shape_;
    std::vector<std::byte> chunk(manifest.chunk_length(0));
    if (!Update(base_, static_cast<float>(client) * 1e-6F, manifest.chunk_size).read(0, chunk))
      give_up("an update cannot be read");
    manifest.chunks[0] = sha256(chunk);
    return manifest;
  }
  void judged(const protocol::UpdateVerdict& verdict) {
    if (!verdict.accepted) give_up(verdict.reason);
    Round& round = rounds_[verdict.round.value()];
    if (first_back_ && !first_accepted_) first_accepted_ = Clock::now();
    ++round.verdicts;
    if (kills_ && !killed_ && verdict.round.value() == kRoundOfKill &&
        round.verdicts >= std::max<std::size_t>(1, count_ / 10)) {
      accepted_before_ = round.verdicts;
      killed_ = Clock::now();
      ::kill(static_cast<pid_t>(std::stol(pid_)), SIGKILL);
    }
    if (killed_ || round.verdicts < count_) return;
    round.ended = Clock::now();
    round.after = look_at(pid_);
  }

  boost::asio::io_context io_;
  std::string pid_;
  std::size_t count_;
  std::size_t wanted_;
  PublicKey coordinator_;
  protocol::Address address_;
  std::deque<std::size_t> waiting_;  // clients to connect
  std::size_t connecting_ = 0;
  std::map<std::size_t, int> attempts_;
  Rng rng_{11};
  bool kills_ = false;
  std::optional<Clock::time_point> killed_;
  std::size_t accepted_before_ = 0;
  std::size_t back_ = 0;
  std::optional<Clock::time_point> first_back_;
  std::optional<Clock::time_point> all_back_;
  std::optional<Clock::time_point> first_accepted_;
  std::optional<Clock::time_point> ended_;
  std::vector<std::shared_ptr<protocol::Link>> links_;
  std::map<std::uint32_t, Round> rounds_;
  std::shared_ptr<const std::vector<float>> base_;
  protocol::Manifest shape_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const bool restart = argc == 6 && std::string(argv[5]) == "restart";
  if (argc != 5 && !restart) give_up("usage: swarm_rounds DATA_DIR PID COUNT ROUNDS [restart]");
  Measurement measurement(argv[1], argv[2], std::stoul(argv[3]), std::stoul(argv[4]));
  if (restart)
    measurement.run_with_restart();
  else
    measurement.run();
}
