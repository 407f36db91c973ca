// One run of an attack: a network, a record that changes from time to time, look-ups, and their results.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "dht/overlays/kademlia.h"
#include "dht/record_guard.h"
#include "lab/attack/hostile_nodes.h"
#include "sim/directory/overlay_directory.h"

namespace fedge::lab {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kBegin = 4;           // round in which the hostile nodes begin
constexpr std::size_t kMoves = 10;          // rounds between two records
constexpr double kSettled = 3;              // seconds after publishing until the new record is expected
constexpr std::size_t kLookups = 5;         // per round
constexpr std::size_t kVictims = 20;        // of the eclipse attack
constexpr std::size_t kKeysOfVictim = 100;  // random keys; the victim should know an honest node near each
constexpr std::size_t kRubbishBytes = 1 << 16;
constexpr std::size_t kAnySize = 1 << 20;  // size limit of nodes that do not check values
constexpr std::size_t kLongName = 250;

SecretKey coordinator(std::uint64_t seed) {
  Rng stream = Rng(seed).fork("coordinator's key");
  std::array<std::uint8_t, 32> bytes{};
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(stream.below(256));
  return SecretKey::from_seed(bytes);
}

// A hostile node's id: as near to the key as possible in kCrowd, random in other attacks.
dht::Id hostile_id(const AttackOptions& options, dht::Id key, Rng& rng) {
  const dht::Id drawn = rng.next_u64();
  if (options.attack != Attack::kCrowd) return drawn;
  if (!options.defence.overlay.bound_ids) return key ^ (drawn >> 40);
  return options.ground_bits == 0 ? drawn : key ^ (drawn >> options.ground_bits);
}

dht::OverlayOptions overlay_of(const AttackOptions& options) {
  dht::OverlayOptions overlay;
  overlay.kind = dht::OverlayKind::kKademlia;
  overlay.replication = options.replication;
  overlay.protections = options.defence.overlay;
  overlay.store.value_bytes = options.defence.signatures ? dht::kMaxSignedRecord : kAnySize;
  return overlay;
}

class AttackRun {
 public:
  explicit AttackRun(const AttackOptions& options)
      : options_(options),
        rng_(Rng(options.seed).fork("attack")),
        secret_(coordinator(options.seed)),
        honest_(options.nodes -
                static_cast<std::size_t>(options.hostile * static_cast<double>(options.nodes))),
        key_(dht::coordinator_key(secret_.public_key())),
        network_(overlay_of(options), options.nodes, rng_.fork("network"), setup()),
        hostile_(options, network_, static_cast<dht::Address>(honest_)) {}

  AttackResult run() {
    std::vector<dht::Address> everybody;
    for (std::size_t i = 0; i < options_.nodes; ++i) everybody.push_back(static_cast<dht::Address>(i));
    network_.run_until(Time(std::chrono::hours{1}));  // after time 0: records have begin and end times
    network_.start_static(everybody);
    network_.watch([this](const dht::Message& message) { note(message); });
    for (std::size_t i = 0; options_.attack == Attack::kEclipse && i < kVictims; ++i)
      victims_.push_back(static_cast<dht::Address>(1 + i));
    for (std::size_t round = 0; round < options_.rounds; ++round) this->round(round);
    run_for(15);  // lets open look-ups end
    return result();
  }

 private:
  sim::NetworkSetup setup() {
    sim::NetworkSetup setup;
    if (options_.defence.signatures)
      setup.policy = sim::keep_right_records([this] { return network_.now(); });
    Rng honest = rng_.fork("honest ids");
    Rng hostile = rng_.fork("hostile ids");
    for (std::size_t i = 0; i < options_.nodes; ++i) {
      const bool good = i < honest_;
      setup.identities.ids.push_back(good ? honest.next_u64()
                                          : hostile_id(options_, sim::id_of(key_), hostile));
      setup.identities.groups.push_back(static_cast<std::uint32_t>(good ? i : honest_ + i % options_.groups));
    }
    return setup;
  }

  void run_for(double more) { network_.run_until(network_.now() + seconds(more)); }
  bool is_honest(const dht::Contact& contact) const {
    return contact.address < honest_ && network_.node(contact.address).self() == contact;
  }

  void round(std::size_t round) {
    if (round % kMoves == 0) publish();
    if (round == kBegin) hostile_.turn(sim::id_of(key_));
    if (round >= kBegin) attack();
    if (round == options_.rounds / 2)
      for (const dht::Address victim : victims_) start_anew(victim);
    for (std::size_t i = 0; i < kLookups; ++i) {
      run_for(1.0 / kLookups);
      const bool meant = victims_.empty() ? round > kBegin : round > options_.rounds / 2 + 2;
      if (meant) look_up();
    }
  }

  // Publishes a new record of the coordinator, which is node 0, with other ports.
  void publish() {
    ++version_;
    published_at_.push_back(network_.now());
    const std::string host = options_.attack == Attack::kReflect ? std::string(kLongName, 'h') : "192.0.2.1";
    dht::Announcement announcement;
    const std::size_t addresses = options_.attack == Attack::kReflect ? dht::kMaxAddresses : 1;
    for (std::size_t i = 0; i < addresses; ++i)
      announcement.addresses.push_back({host, static_cast<std::uint16_t>(1000 + 10 * version_ + i)});
    auto record = dht::make_record(
        secret_, {.sequence = version_, .expires = network_.now() + std::chrono::hours{2}}, announcement);
    FEDGE_CHECK(record, "a record of the simulation's own is right");
    const dht::Publication publication = sim::publication_of(*record);
    slot_ = publication.slot;
    versions_.push_back(*publication.bytes);
    network_.publish(0, publication);
  }

  void attack() {
    if (options_.attack == Attack::kEclipse)
      for (const dht::Address victim : victims_)
        if (network_.up(victim)) hostile_.flood(network_.node(victim).self());
    if (options_.attack == Attack::kPoison) hostile_.leave_rubbish(kRubbishBytes);
    if (options_.attack != Attack::kReflect) return;
    std::vector<dht::Contact> holders;
    for (dht::Address node = 2; node < honest_; ++node)
      if (network_.node(node).store().get(sim::id_of(key_), slot_) != nullptr)
        holders.push_back(network_.node(node).self());
    sent_to_reflect_ += static_cast<double>(hostile_.reflect(network_.node(1).self(), holders));
  }

  // Restarts a victim with only the contacts that the defence keeps. The attacker controls the first
  // bootstrap node.
  void start_anew(dht::Address victim) {
    std::vector<dht::Contact> others;
    if (options_.defence.saved_table) {
      const auto& table = static_cast<const dht::Kademlia&>(network_.node(victim).routing());
      for (unsigned bucket = 0; bucket < dht::kIdBits; ++bucket)
        others.insert(others.end(), table.bucket(bucket).begin(), table.bucket(bucket).end());
    }
    for (std::size_t i = 1; i < options_.defence.bootstraps; ++i)
      others.push_back(network_.node(static_cast<dht::Address>(rng_.below(options_.nodes))).self());
    network_.stop(victim, false);
    network_.introduce(victim, others);
    const auto& hostile = hostile_.all();
    network_.start(victim, hostile.empty() ? dht::Address{0} : hostile[rng_.below(hostile.size())].address);
  }

  void look_up() {
    const std::size_t first = kVictims + 1;
    const auto reader = victims_.empty() ? static_cast<dht::Address>(first + rng_.below(honest_ - first))
                                         : victims_[rng_.below(victims_.size())];
    if (!network_.up(reader)) return;
    std::uint64_t least = version_;
    while (least > 1 && network_.now() - published_at_[least - 1] < seconds(kSettled)) --least;
    ++lookups_;
    network_.lookup(reader, sim::id_of(key_), [this, least](const dht::LookupResult& got) {
      const std::uint64_t version = read(got);
      messages_ += got.messages;
      if (version == 0) return;
      ++(version > version_ ? forged_ : version < least ? stale_ : succeeded_);
      if (version >= least && version <= version_) latency_ += to_seconds(got.latency);
    });
  }

  // The record number that a reader accepts. 0: none; larger than all published ones: forged.
  std::uint64_t read(const dht::LookupResult& got) const {
    if (options_.defence.signatures) {
      std::vector<std::vector<std::byte>> values;
      for (const dht::Value& value : got.values)
        if (value.bytes) values.push_back(*value.bytes);
      dht::RecordGuard guard;  // a reader without earlier look-ups
      const auto records = guard.latest(key_, values, network_.now());
      return records.empty() ? 0 : records.front().sequence;
    }
    const auto latest =
        std::max_element(got.values.begin(), got.values.end(),
                         [](const dht::Value& a, const dht::Value& b) { return a.sequence < b.sequence; });
    if (latest == got.values.end()) return 0;
    const auto known = std::find(versions_.begin(), versions_.end(), *latest->bytes);
    return known == versions_.end() ? version_ + 1
                                    : static_cast<std::uint64_t>(known - versions_.begin()) + 1;
  }

  void note(const dht::Message& message) {
    const bool made_up = message.rpc == 0 && !message.one_way;
    if (message.to.address == 1 && message.reply && made_up)
      reflected_ += static_cast<double>(message.bytes());
    if (message.from.address < honest_ && !made_up) honest_bytes_ += static_cast<double>(message.bytes());
  }

  AttackResult result() const {
    const auto honest = static_cast<double>(honest_);
    AttackResult result;
    result.success = succeeded_ / lookups_;
    result.stale = stale_ / lookups_;
    result.forged = forged_ / lookups_;
    result.latency_ms = succeeded_ > 0 ? 1000 * latency_ / succeeded_ : kNothing;
    result.messages = messages_ / lookups_;
    result.traffic = honest_bytes_ / honest / static_cast<double>(options_.rounds);
    result.kept = result.honest_contacts = result.rubbish = result.amplification = kNothing;
    if (options_.attack == Attack::kEclipse) look_at_victims(result);
    if (options_.attack == Attack::kPoison) {
      result.rubbish = 0;
      for (dht::Address node = 0; node < honest_; ++node)
        for (const dht::StoredValue& stored : network_.node(node).store().values())
          if (stored.value.key != sim::id_of(key_))
            result.rubbish += static_cast<double>(stored.value.size());
      result.rubbish /= honest;
    }
    if (sent_to_reflect_ > 0) result.amplification = reflected_ / sent_to_reflect_;
    return result;
  }

  void look_at_victims(AttackResult& result) const {
    Rng keys = rng_.fork("victims' keys");
    std::size_t kept = 0;
    std::size_t contacts = 0;
    std::size_t honest = 0;
    for (const dht::Address victim : victims_) {
      const auto& table = static_cast<const dht::Kademlia&>(network_.node(victim).routing());
      bool somebody = true;
      for (std::size_t i = 0; i < kKeysOfVictim; ++i) {
        std::vector<dht::Contact> near;
        table.route(keys.next_u64(), near);
        somebody = somebody && std::any_of(near.begin(), near.end(),
                                           [&](const dht::Contact& contact) { return is_honest(contact); });
      }
      kept += somebody ? 1 : 0;
      for (unsigned bucket = 0; bucket < dht::kIdBits; ++bucket)
        for (const dht::Contact& contact : table.bucket(bucket)) {
          ++contacts;
          if (is_honest(contact)) ++honest;
        }
    }
    result.kept = static_cast<double>(kept) / static_cast<double>(victims_.size());
    result.honest_contacts =
        static_cast<double>(honest) / static_cast<double>(std::max<std::size_t>(1, contacts));
  }

  AttackOptions options_;
  Rng rng_;
  SecretKey secret_;
  std::size_t honest_;  // addresses below this are honest
  dht::Key key_;
  sim::OverlayNetwork network_;
  HostileNodes hostile_;
  std::vector<dht::Address> victims_;
  std::uint64_t slot_ = 0;  // slot of the coordinator's records
  std::uint64_t version_ = 0;
  std::vector<Time> published_at_;
  std::vector<std::vector<std::byte>> versions_;
  double lookups_ = 0;
  double succeeded_ = 0;
  double stale_ = 0;
  double forged_ = 0;
  double latency_ = 0;
  double messages_ = 0;
  double honest_bytes_ = 0;
  double reflected_ = 0;
  double sent_to_reflect_ = 0;
};

}  // namespace

AttackResult run_attack(const AttackOptions& options) { return AttackRun(options).run(); }

}  // namespace fedge::lab
