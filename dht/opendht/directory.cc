// NetworkDirectory on OpenDHT 2.4. OpenDHT's callbacks and policies run on its own threads. They share only
// Shared with this object; hand_over() runs everything else on the owner's thread.
#include <opendht/dhtrunner.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "dht/network_directory.h"
#include "dht/opendht/entrance.h"
#include "dht/opendht/node_file.h"
#include "protocol/codecs/little_endian.h"

namespace fedge::dht {
namespace {

namespace odht = ::dht;

// Value types, by how long a node keeps a value after its last put. A record uses the first type that keeps
// it until it expires. At least a minute: OpenDHT endlessly repeats the put of a value that lasts less than
// its margin of ten seconds.
constexpr odht::ValueType::Id kFirstType = 0xfed0;
constexpr std::array<std::chrono::minutes, 4> kKept = {std::chrono::minutes{1}, std::chrono::minutes{2},
                                                       std::chrono::minutes{5}, std::chrono::minutes{10}};
// Most bytes that a node stores. Beyond it OpenDHT drops values of the address that has stored most.
constexpr std::size_t kMaxStored = std::size_t{16} << 20;
// Limits for the answers to one lookup: signers with valid records, smallest keys first, and invalid
// values, which are counted by flaw.
constexpr std::size_t kMaxSigners = 4 * kMaxSignersPerKey;
constexpr std::size_t kMaxWrong = 64;

// How long a record that is published before any node is reachable waits for one.
constexpr Duration kPatience = seconds(5);
constexpr std::size_t kMaxWaiting = 64;

using RawValue = std::shared_ptr<odht::Value>;

odht::InfoHash hash_of(const Key& key) { return {key.data(), odht::InfoHash::size()}; }

// The OpenDHT id of a record under its key. Each record has its own: nodes do not accept a new value for an
// id that they have already stored, so a later record could not replace an earlier one.
odht::Value::Id place_of(const PublicKey& signer, std::uint64_t sequence) {
  std::vector<std::byte> text(signer.bytes.size());
  std::memcpy(text.data(), signer.bytes.data(), text.size());
  protocol::append(text, sequence);
  const Digest digest = sha256(std::span<const std::byte>(text));
  odht::Value::Id id = 0;
  std::memcpy(&id, digest.data(), sizeof id);
  return id == odht::Value::INVALID_ID ? 1 : id;
}

bool is_record(const odht::Value& value) {
  return value.type >= kFirstType && value.type < kFirstType + kKept.size();
}

odht::ValueType::Id type_of(Duration lasts) {
  const auto found = std::find_if(kKept.begin(), kKept.end(), [&](auto kept) { return lasts <= kept; });
  const auto index = std::min(found, kKept.end() - 1) - kKept.begin();
  return static_cast<odht::ValueType::Id>(kFirstType + index);
}

std::vector<std::byte> bytes_of(const odht::Value& value) {
  const auto raw = std::as_bytes(std::span(value.data));
  return {raw.begin(), raw.end()};
}

// Nothing unless the host is an IP address.
std::optional<odht::SockAddr> parse_ip(const protocol::Address& place) {
  odht::SockAddr address;
  address.setFamily(place.host.find(':') == std::string::npos ? AF_INET : AF_INET6);
  address.setPort(place.port);
  try {
    address.setAddress(place.host.c_str());
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return address;
}

struct Shared {
  std::function<Time()> now;
  std::function<void(std::function<void()>)> post;
  std::atomic<std::uint64_t> refused{0};
};

// Whether an honest node stores this value under the key.
bool is_right(const Shared& shared, const odht::InfoHash& place, const odht::Value& value) {
  // Refuse values with fields besides the record's bytes, or with another id.
  if (!is_record(value) || !value.user_type.empty() || value.owner || value.isEncrypted() ||
      value.recipient || !value.signature.empty())
    return false;
  const auto bytes = std::as_bytes(std::span(value.data));
  const auto claim = read_claim(bytes);
  if (!claim || hash_of(claim->key) != place || place_of(claim->signer, claim->sequence) != value.id)
    return false;
  return std::holds_alternative<Record>(open_record(claim->key, bytes, shared.now()));
}

odht::ValueType record_type(const std::shared_ptr<Shared>& shared, std::size_t index) {
  const auto store = [shared](const odht::InfoHash& key, RawValue& value, const odht::InfoHash&,
                              const odht::SockAddr&) {
    const bool right = is_right(*shared, key, *value);
    if (!right) ++shared->refused;
    return right;
  };
  // Refusing edits is OpenDHT's default: a stored value never changes.
  return {static_cast<odht::ValueType::Id>(kFirstType + index), "fedge record", kKept.at(index), store};
}

class OpenDhtDirectory final : public NetworkDirectory {
 public:
  explicit OpenDhtDirectory(const NetworkOptions& options)
      : NetworkDirectory(options.limits), options_(options), shared_(std::make_shared<Shared>()) {
    shared_->now = options.now;
    shared_->post = options.post;
  }
  ~OpenDhtDirectory() override;

  Result<void> start();
  std::uint16_t port() const override { return runner_.getBoundPort(family_); }
  NetworkStatus status() const override;
  std::vector<KnownNode> known_nodes() const override;
  void advance(Time now) override;

 private:
  struct Put {
    odht::Value::Id id = odht::Value::INVALID_ID;
    Time expires{};
  };

  struct Waiting {
    Record record;
    Done done;
    Time until{};
  };

  void put(const Record& record, Done done) override;
  void put_now(const Record& record, Done done);
  void put_what_waits(Time now);
  void get(const Key& key, Got got) override;
  bool is_alone() const { return runner_.getNodesStats(family_).good_nodes == 0; }
  void knock();
  void knock_at(const std::vector<protocol::Address>& places);
  // Runs `what` on the owner's thread, unless this object has been destroyed by then.
  void hand_over(std::function<void(OpenDhtDirectory&)> what) const;

  NetworkOptions options_;
  sa_family_t family_ = AF_INET;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<OpenDhtDirectory*> self_ = std::make_shared<OpenDhtDirectory*>(this);
  Entrance entrance_;
  std::vector<protocol::Address> places_;  // bootstrap nodes
  std::size_t resolving_ = 0;              // bootstrap names being resolved
  std::vector<Waiting> waiting_;
  std::map<std::pair<Key, PublicKey>, Put> puts_;
  mutable std::mutex count_;  // guards counted_: reading the runner's counters resets them
  mutable NetworkStatus counted_;
  odht::DhtRunner runner_;
};

OpenDhtDirectory::~OpenDhtDirectory() {
  *self_ = nullptr;
  // Ignores errors: without the file the next process asks its bootstrap nodes.
  if (!options_.known_nodes.empty()) static_cast<void>(write_node_file(options_.known_nodes, known_nodes()));
  // Pending callbacks are dropped: their owner is gone.
  runner_.shutdown();
  runner_.join();
}

Result<void> OpenDhtDirectory::start() {
  const protocol::Address& at = options_.listen;
  const auto address = parse_ip(at);
  if (!address) return invalid("the directory can listen only on an IP address, not on '" + at.host + "'");
  family_ = address->getFamily();
  odht::DhtRunner::Config config;
  config.dht_config.node_config.network = kNetwork;
  config.dht_config.node_config.public_stable = options_.fixed;
  (family_ == AF_INET ? config.bind4 : config.bind6) = *address;
  try {
    runner_.run(config, {});
  } catch (const std::exception& error) {
    return Error{ErrorCode::kUnavailable,
                 "the directory cannot listen on UDP " + protocol::to_string(at) + ": " + error.what()};
  }
  runner_.setStorageLimit(kMaxStored);
  for (std::size_t i = 0; i < kKept.size(); ++i) runner_.registerType(record_type(shared_, i));
  places_ = options_.bootstrap;
  for (const KnownNode& node : read_node_file(options_.known_nodes))
    if (const auto where = protocol::parse_address(node.address)) places_.push_back(*where);
  return {};
}

void OpenDhtDirectory::knock() {
  knock_at(places_);
  if (resolving_ > 0) return;  // resolving names takes time
  for (const protocol::Address& place : places_) {
    if (parse_ip(place)) continue;
    ++resolving_;
    options_.resolve(place, [self = self_](const std::vector<protocol::Address>& found) {
      if (*self == nullptr) return;
      --(*self)->resolving_;
      (*self)->knock_at(found);
    });
  }
}

// Contacts those that are IP addresses.
void OpenDhtDirectory::knock_at(const std::vector<protocol::Address>& places) {
  std::vector<odht::SockAddr> addresses;
  for (const protocol::Address& place : places)
    if (auto parsed = parse_ip(place)) addresses.push_back(std::move(*parsed));
  if (!addresses.empty()) runner_.bootstrap(std::move(addresses));
}

void OpenDhtDirectory::hand_over(std::function<void(OpenDhtDirectory&)> what) const {
  shared_->post([self = self_, what = std::move(what)] {
    if (*self != nullptr) what(**self);
  });
}

void OpenDhtDirectory::put(const Record& record, Done done) {
  if (places_.empty() || !is_alone() || waiting_.size() == kMaxWaiting)
    return put_now(record, std::move(done));
  waiting_.push_back({record, std::move(done), now() + kPatience});
}

void OpenDhtDirectory::put_what_waits(Time now) {
  if (waiting_.empty()) return;
  const Duration left = waiting_.front().until - now;
  if (left > Duration(0) && left <= kPatience && is_alone()) return;
  for (Waiting& item : std::exchange(waiting_, {})) put_now(item.record, std::move(item.done));
}

void OpenDhtDirectory::put_now(const Record& record, Done done) {
  auto value = std::make_shared<odht::Value>();
  value->id = place_of(record.signer, record.sequence);
  value->type = type_of(record.expires - now());
  value->data.resize(record.bytes.size());
  std::memcpy(value->data.data(), record.bytes.data(), record.bytes.size());
  Put& last = puts_[{record.key, record.signer}];
  if (last.id != odht::Value::INVALID_ID && last.id != value->id)
    runner_.cancelPut(hash_of(record.key), last.id);
  last = {value->id, record.expires};
  // A permanent put: OpenDHT repeats it as nodes come and go, until advance() cancels it.
  const auto told = [this, done = std::move(done)](bool kept) {
    hand_over([done, kept](OpenDhtDirectory&) {
      if (kept) return done({});
      done(Error{ErrorCode::kUnavailable, "no other directory node is reachable"});
    });
  };
  runner_.put(hash_of(record.key), value, told, odht::time_point::max(), true);
}

void OpenDhtDirectory::get(const Key& key, Got got) {
  struct Answer {
    std::mutex mutex;
    std::map<PublicKey, std::pair<std::uint64_t, std::vector<std::byte>>> right;  // latest of each signer
    Values wrong;
  };
  const auto answer = std::make_shared<Answer>();
  const odht::InfoHash place = hash_of(key);
  // Returns true, so that the search continues: another node may have the valid record.
  const auto take = [shared = shared_, place, answer](const std::vector<RawValue>& values) {
    const std::lock_guard lock(answer->mutex);
    for (const RawValue& value : values) {
      if (!is_right(*shared, place, *value)) {
        if (answer->wrong.size() < kMaxWrong && value->data.size() <= 2 * kMaxSignedRecord)
          answer->wrong.push_back(bytes_of(*value));
        continue;
      }
      auto bytes = bytes_of(*value);
      const auto claim = read_claim(bytes);
      auto& [sequence, latest] = answer->right[claim->signer];
      if (latest.empty() || sequence < claim->sequence) {
        sequence = claim->sequence;
        latest = std::move(bytes);
      }
      if (answer->right.size() > kMaxSigners) answer->right.erase(std::prev(answer->right.end()));
    }
    return true;
  };
  const auto finish = [this, answer, got = std::move(got)](bool answered) {
    hand_over([answer, got, answered](OpenDhtDirectory&) {
      const std::lock_guard lock(answer->mutex);
      Values values = answer->wrong;
      for (const auto& [signer, latest] : answer->right) values.push_back(latest.second);
      if (answered || !values.empty()) return got(values);
      got(Error{ErrorCode::kUnavailable, "no other directory node answers"});
    });
  };
  runner_.get(place, take, finish, is_record);
}

void OpenDhtDirectory::advance(Time now) {
  NetworkDirectory::advance(now);
  if (entrance_.is_time(now, [this] { return is_alone(); })) knock();
  put_what_waits(now);
  for (auto put = puts_.begin(); put != puts_.end();) {
    if (put->second.expires > now) {
      ++put;
      continue;
    }
    runner_.cancelPut(hash_of(put->first.first), put->second.id);
    put = puts_.erase(put);
  }
}

NetworkStatus OpenDhtDirectory::status() const {
  const std::lock_guard lock(count_);
  for (const unsigned count : runner_.getNodeMessageStats(false)) counted_.sent_messages += count;
  for (const unsigned count : runner_.getNodeMessageStats(true)) counted_.received_messages += count;
  const odht::NodeStats nodes = runner_.getNodesStats(family_);
  counted_.good_nodes = nodes.good_nodes;
  counted_.dubious_nodes = nodes.dubious_nodes;
  const auto [bytes, values] = runner_.getStoreSize();
  counted_.stored_bytes = bytes;
  counted_.stored_records = values;
  counted_.refused_stores = shared_->refused;
  counted_.public_addresses = runner_.getPublicAddressStr(family_);
  return counted_;
}

std::vector<KnownNode> OpenDhtDirectory::known_nodes() const {
  std::vector<KnownNode> nodes;
  for (const odht::NodeExport& node : runner_.exportNodes())
    nodes.push_back({node.id.toString(), odht::SockAddr(node.ss, node.sslen).toString()});
  return nodes;
}

}  // namespace

Result<std::unique_ptr<NetworkDirectory>> open_network_directory(const NetworkOptions& options) {
  auto directory = std::make_unique<OpenDhtDirectory>(options);
  FEDGE_TRY_VOID(directory->start());
  directory->advance(options.now());
  return std::unique_ptr<NetworkDirectory>(std::move(directory));
}

}  // namespace fedge::dht
