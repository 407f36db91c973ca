// Search by XOR distance: candidates sorted by distance, alpha requests at a time, until the `width` closest
// live nodes have answered. Asked nodes stay in the list, so that none is asked twice.
#include <algorithm>

#include "dht/overlays/search.h"

namespace fedge::dht {
namespace {

enum class State : std::uint8_t { kNew, kAsked, kAnswered, kSilent };

// 16 bytes, because about 24 of these are compared for every contact of every answer. The id is distance XOR
// target.
struct XorCandidate {
  Id distance = 0;
  Address address = kNobody;
  std::uint16_t depth = 0;  // length of the chain of answers that led to it
  State state = State::kNew;
};
static_assert(sizeof(XorCandidate) == 16);

class XorSearch final : public Search {
 public:
  explicit XorSearch(const XorSearchOptions& options)
      : alpha_(options.alpha),
        width_(options.width),
        bound_(options.spare * options.width),
        per_group_(options.per_group),
        identities_(options.identities) {}

  void start(const SearchStart& start, Found /*found*/, std::span<const Contact> contacts) override {
    start_ = start;
    list_.clear();
    in_flight_ = asked_ = 0;
    done_ = false;
    outcome_.clear();
    // The searcher itself may hold values like any node, and need not be asked.
    list_.push_back({xor_distance(start.self.id, start.target), start.self.address, 0, State::kAnswered});
    for (const Contact& contact : contacts) insert(contact, 1);
    end_if_answered();
  }

  std::optional<Contact> next() override {
    if (done_ || in_flight_ >= alpha_ || asked_ >= kMaxAsked) return std::nullopt;
    std::size_t live = 0;
    for (XorCandidate& candidate : list_) {
      if (candidate.state == State::kSilent) continue;
      if (live++ == width_) break;
      if (candidate.state != State::kNew) continue;
      candidate.state = State::kAsked;
      ++in_flight_;
      ++asked_;
      ++outcome_.messages;
      return contact_of(candidate);
    }
    return std::nullopt;
  }

  void answered(const Message& reply) override {
    XorCandidate* candidate = find(reply.from);
    if (done_ || candidate == nullptr || candidate->state != State::kAsked) return;
    candidate->state = State::kAnswered;
    --in_flight_;
    ++outcome_.messages;
    const std::uint16_t depth = candidate->depth;
    const Contact from = contact_of(*candidate);
    for (std::size_t i = 0; i < reply.routed; ++i)
      insert(reply.contacts[i], static_cast<std::uint16_t>(depth + 1));
    if (!reply.values.empty()) {
      if (!outcome_.holder.known()) {
        outcome_.holder = from;
        outcome_.hops = depth;
      }
      outcome_.add_values(reply.values);
      if (start_.goal != Goal::kAllValues) return finish(from.address);
    }
    end_if_answered();
  }

  void silent(const Contact& who) override {
    XorCandidate* candidate = find(who);
    if (done_ || candidate == nullptr || candidate->state != State::kAsked) return;
    candidate->state = State::kSilent;
    --in_flight_;
    ++outcome_.timeouts;
    end_if_answered();
  }

  bool done() const override { return done_; }
  void prefetch() const override {
    for (std::size_t i = 0; i < list_.size(); i += 4) __builtin_prefetch(list_.data() + i);
  }

 private:
  static bool nearer(const XorCandidate& a, const XorCandidate& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.address < b.address;
  }

  Contact contact_of(const XorCandidate& candidate) const {
    return {candidate.distance ^ start_.target, candidate.address};
  }

  // The first entry that is not nearer. Branch-free bisection: the direction is unpredictable, and this runs
  // for every contact of every answer.
  std::vector<XorCandidate>::iterator place_of(const XorCandidate& sought) {
    std::size_t first = 0;
    for (std::size_t size = list_.size(); size > 0;) {
      const std::size_t half = (size + 1) / 2;
      first += list_[first + half - 1].distance < sought.distance ? half : 0;
      size -= half;
    }
    while (first < list_.size() && nearer(list_[first], sought)) ++first;  // several nodes of one id
    return list_.begin() + static_cast<std::ptrdiff_t>(first);
  }

  XorCandidate* find(const Contact& contact) {
    const XorCandidate sought{xor_distance(contact.id, start_.target), contact.address};
    const auto at = place_of(sought);
    return at != list_.end() && !nearer(sought, *at) ? &*at : nullptr;
  }

  void insert(const Contact& contact, std::uint16_t depth) {
    const XorCandidate fresh{xor_distance(contact.id, start_.target), contact.address, depth};
    if (list_.size() >= bound_ && !nearer(fresh, list_.back())) return;
    const auto at = place_of(fresh);
    if (at != list_.end() && !nearer(fresh, *at)) return;
    if (contact.address == start_.self.address) return;
    if (per_group_ > 0 && !make_room_in_group(fresh)) return;
    list_.insert(place_of(fresh), fresh);
    if (list_.size() > bound_ && list_.back().state != State::kAsked) list_.pop_back();
  }

  // True if the group has room, or after removing a farther candidate of the group.
  bool make_room_in_group(const XorCandidate& fresh) {
    std::size_t present = 0;
    auto farthest = list_.end();
    for (auto it = list_.begin(); it != list_.end(); ++it) {
      const bool counts = it->state != State::kSilent && it->address != start_.self.address;
      if (!counts || identities_->group(it->address) != identities_->group(fresh.address)) continue;
      ++present;
      if (it->state == State::kNew && nearer(fresh, *it)) farthest = it;
    }
    if (present < per_group_) return true;
    if (farthest == list_.end()) return false;
    list_.erase(farthest);
    return true;
  }

  void end_if_answered() {
    std::size_t live = 0;
    for (const XorCandidate& candidate : list_) {
      if (candidate.state == State::kSilent) continue;
      if (live++ == width_) break;
      if (candidate.state == State::kAsked) return;
      if (candidate.state == State::kNew && asked_ < kMaxAsked) return;
    }
    finish(kNobody);
  }

  // Ends with the closest live nodes, as far as known. The holder of a value counts as having answered.
  void finish(Address holder) {
    done_ = true;
    std::uint16_t depth = 0;
    for (const XorCandidate& candidate : list_) {
      const bool heard = candidate.state == State::kAnswered;
      if (candidate.state == State::kSilent || (holder == kNobody && !heard)) continue;
      if (outcome_.nodes.size() < width_) {
        outcome_.nodes.push_back(contact_of(candidate));
        depth = std::max(depth, candidate.depth);
      }
      const bool other = candidate.address != holder && candidate.depth > 0;
      if (holder != kNobody && heard && other && !outcome_.lacking.known())
        outcome_.lacking = contact_of(candidate);
    }
    if (!outcome_.holder.known()) outcome_.hops = depth;
  }

  std::size_t alpha_;
  std::size_t width_;
  std::size_t bound_;
  std::size_t per_group_;
  const Identities* identities_;
  SearchStart start_;
  std::vector<XorCandidate> list_;
  std::size_t in_flight_ = 0;
  std::size_t asked_ = 0;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Search> make_xor_search(const XorSearchOptions& options) {
  return std::make_unique<XorSearch>(options);
}

}  // namespace fedge::dht
