// Search along a route: a stack of candidates, the best on top. Each answer pushes nodes nearer to the key; a
// node that stays silent uncovers the next best. The search ends, because the paths of Chord and Pastry
// strictly approach the key and no node is asked twice.
#include <algorithm>

#include "dht/overlays/search.h"

namespace fedge::dht {
namespace {

struct RoutedCandidate {
  Contact contact;
  std::uint32_t depth = 0;  // nodes asked in sequence before this one
};

class RoutedSearch final : public Search {
 public:
  void start(const SearchStart& start, Found found, std::span<const Contact> contacts) override {
    start_ = start;
    stack_.clear();
    asked_.clear();
    waiting_ = done_ = false;
    outcome_.clear();
    take(found, contacts, 0);
    end_if_stuck();
  }

  std::optional<Contact> next() override {
    if (done_ || waiting_) return std::nullopt;
    current_ = stack_.back();
    stack_.pop_back();
    asked_.push_back(current_.contact.address);
    waiting_ = true;
    ++outcome_.messages;
    return current_.contact;
  }

  void answered(const Message& reply) override {
    waiting_ = false;
    ++outcome_.messages;
    const std::span<const Contact> contacts(reply.contacts.data(), reply.routed);
    if (reply.values.empty()) {
      if (!outcome_.holder.known()) take(reply.found, contacts, current_.depth);
      return end_if_stuck();
    }
    outcome_.add_values(reply.values);
    if (!outcome_.holder.known()) {
      outcome_.holder = current_.contact;
      outcome_.hops = current_.depth;
      outcome_.nodes.assign(contacts.begin(), contacts.end());
      done_ = start_.goal != Goal::kAllValues;
      stack_.clear();  // from now on only the other holders count
      push(contacts, current_.depth);
    }
    if (!done_) end_if_stuck();
  }

  void silent(const Contact& /*who*/) override {
    waiting_ = false;
    ++outcome_.timeouts;
    end_if_stuck();
  }

  bool done() const override { return done_; }
  void prefetch() const override {
    __builtin_prefetch(stack_.data());
    __builtin_prefetch(asked_.data());
  }

 private:
  void take(Found found, std::span<const Contact> contacts, std::uint32_t depth) {
    const bool responsible = found == Found::kResponsible;
    if (start_.goal == Goal::kNodes && found == Found::kOwners) {
      outcome_.hops = depth + 1;
      return finish(contacts);
    }
    if (responsible && !wants_values(start_.goal)) {
      outcome_.hops = depth;
      return finish(contacts);
    }
    if (responsible) {  // the owner has no value, but other holders may
      outcome_.nodes.assign(contacts.begin(), contacts.end());
      stack_.clear();
    }
    push(contacts, depth);
  }

  void push(std::span<const Contact> contacts, std::uint32_t depth) {
    for (auto it = contacts.rbegin(); it != contacts.rend(); ++it)
      if (it->address != start_.self.address && !was_asked(it->address)) stack_.push_back({*it, depth + 1});
  }

  bool was_asked(Address address) const {
    return std::find(asked_.begin(), asked_.end(), address) != asked_.end();
  }

  void finish(std::span<const Contact> nodes) {
    outcome_.nodes.assign(nodes.begin(), nodes.end());
    done_ = true;
  }

  void end_if_stuck() {
    while (!stack_.empty() && was_asked(stack_.back().contact.address)) stack_.pop_back();
    if (!waiting_ && (stack_.empty() || asked_.size() >= kMaxAsked)) done_ = true;
  }

  SearchStart start_;
  RoutedCandidate current_;
  std::vector<RoutedCandidate> stack_;
  std::vector<Address> asked_;
  bool waiting_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Search> make_routed_search() { return std::make_unique<RoutedSearch>(); }

}  // namespace fedge::dht
