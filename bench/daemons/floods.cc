#include "bench/daemons/floods.h"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "bench/daemons/process.h"
#include "bench/daemons/swarm_client.h"
#include "core/rng.h"
#include "protocol/codec.h"

namespace fedge::bench {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kSilent = 4000;        // connections held open at once
constexpr std::size_t kNoisy = 64;           // connections at once
constexpr std::size_t kSlow = 1000;          // connections at once
constexpr std::size_t kStrangers = 64;       // clients at once
constexpr std::size_t kUnknown = 1'000'000;  // client numbers from here on are not enrolled

struct Flood {
  explicit Flood(const Target& wanted) : target(wanted) {}
  // A random loopback address for each connection, so that limits per address do not help the coordinator.
  boost::asio::ip::address anywhere() {
    const auto part = [&] { return static_cast<std::uint32_t>(rng.below(250)) + 1; };
    return boost::asio::ip::address_v4((127U << 24) | (part() << 16) | (part() << 8) | part());
  }
  tcp::endpoint coordinator() const {
    return {boost::asio::ip::make_address(target.address.host), target.address.port};
  }

  boost::asio::io_context io;
  const Target& target;
  Rng rng{1};
  std::size_t done = 0;
};

// A TCP connection without TLS. `act` decides what it does and calls again() to reconnect.
class Raw : public std::enable_shared_from_this<Raw> {
 public:
  using Act = std::function<void(Raw&)>;
  Raw(Flood& flood, Act act) : flood_(flood), act_(std::move(act)), socket_(flood.io), timer_(flood.io) {}

  void again() {
    boost::system::error_code ignored;
    socket_.close(ignored);
    socket_.open(tcp::v4(), ignored);
    socket_.bind({flood_.anywhere(), 0}, ignored);
    socket_.async_connect(flood_.coordinator(),
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            if (error)
                              return self->later(std::chrono::milliseconds(50), [self] { self->again(); });
                            ++self->flood_.done;
                            self->act_(*self);
                          });
  }
  void send(std::string bytes) {
    const auto held = std::make_shared<std::string>(std::move(bytes));
    boost::asio::async_write(socket_, boost::asio::buffer(*held),
                             [held](const boost::system::error_code&, std::size_t) {});
  }
  void until_closed() {
    socket_.async_read_some(boost::asio::buffer(unheeded_),
                            [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                              return error ? self->again() : self->until_closed();
                            });
  }
  // Sends one byte a second of a TLS client's first message.
  void trickle(std::size_t sent) {
    static const std::string hello =
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(500, 'r');
    if (sent < hello.size()) send(hello.substr(sent, 1));
    later(std::chrono::seconds(1), [self = shared_from_this(), sent] { self->trickle(sent + 1); });
  }
  std::string noise() {
    std::string bytes(4096, '\0');
    for (char& byte : bytes) byte = static_cast<char>(flood_.rng.below(256));
    return bytes;
  }

 private:
  void later(std::chrono::milliseconds wait, std::function<void()> next) {
    timer_.expires_after(wait);
    timer_.async_wait([next = std::move(next)](const boost::system::error_code& error) {
      if (!error) next();
    });
  }

  Flood& flood_;
  Act act_;
  tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::array<std::byte, 4096> unheeded_{};
};

void raw(Flood& flood, std::size_t at_once, const Raw::Act& act) {
  for (std::size_t i = 0; i < at_once; ++i) std::make_shared<Raw>(flood, act)->again();
}

// Clients with keys, which reconnect when they are disconnected. `ready` is called once a client is admitted;
// without it, the client leaves at once and reconnects.
class Keyed {
 public:
  Keyed(Flood& flood, std::size_t first, std::function<void(SwarmClient&)> ready)
      : flood_(flood), first_(first), ready_(std::move(ready)) {
    swarm_.address = flood.target.address;
    swarm_.coordinator = flood.target.coordinator;
    swarm_.source = [this] { return flood_.anywhere(); };
    swarm_.on_pong = [](std::size_t, Clock::duration) {};
    swarm_.on_work = [](std::size_t) {};
    swarm_.on_ready = [this](std::size_t client) {
      ++flood_.done;
      if (ready_) return ready_(*clients_.at(client));
      boost::asio::post(flood_.io, [this, client] {
        clients_.at(client)->leave();
        begin(client);
      });
    };
    swarm_.on_gone = [this](std::size_t client, const std::string&) {
      if (client >= kUnknown) ++flood_.done;
      boost::asio::post(flood_.io, [this, client] { begin(client); });
    };
  }
  void start(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) begin(first_ + i);
  }

 private:
  void begin(std::size_t client) {
    auto& place = clients_[client];
    place = std::make_shared<SwarmClient>(swarm_, client);
    place->start();
  }

  Flood& flood_;
  std::size_t first_;
  std::function<void(SwarmClient&)> ready_;
  Swarm swarm_{.io = flood_.io};
  std::map<std::size_t, std::shared_ptr<SwarmClient>> clients_;
};

void send_pings(SwarmClient& client) {
  std::string pings;
  for (int i = 0; i < 20'000; ++i) pings += protocol::encode_empty_frame(protocol::MessageType::kPing);
  client.send(pings);
}

// Announces the largest permitted header and sends none of its bytes.
void announce(SwarmClient& client) {
  const protocol::FrameHeaderBytes header =
      protocol::encode_frame_header({.type = protocol::kTypeOf<protocol::RunAnswer>,
                                     .header_size = protocol::kMaxHeader,
                                     .payload_size = 0});
  client.send(std::string(reinterpret_cast<const char*>(header.data()), header.size()));
}

std::unique_ptr<Keyed> start(const std::string& kind, Flood& flood) {
  const auto keyed = [&](std::size_t first, std::size_t count, std::function<void(SwarmClient&)> ready) {
    auto made = std::make_unique<Keyed>(flood, first, std::move(ready));
    made->start(count);
    return made;
  };
  const std::size_t ours = flood.target.enrolled;
  if (kind == "connections")
    raw(flood, kSilent, [](Raw& one) { one.until_closed(); });
  else if (kind == "noise")
    raw(flood, kNoisy, [](Raw& one) {
      one.send(one.noise());
      one.until_closed();
    });
  else if (kind == "slow")
    raw(flood, kSlow, [](Raw& one) {
      one.trickle(0);
      one.until_closed();
    });
  else if (kind == "strangers")
    return keyed(kUnknown, kStrangers, nullptr);
  else if (kind == "pings")
    return keyed(ours, kFlooders, send_pings);
  else if (kind == "reconnects")
    return keyed(ours, kFlooders, nullptr);
  else if (kind == "headers")
    return keyed(ours, kFlooders, announce);
  else
    give_up("there is no flood of " + kind);
  return nullptr;
}

}  // namespace

std::size_t flood(const std::string& kind, const Target& target, double seconds) {
  Flood flood(target);
  const auto keyed = start(kind, flood);
  flood.io.run_for(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  return flood.done;
}

}  // namespace fedge::bench
