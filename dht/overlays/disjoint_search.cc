// Parallel searches by XOR distance that share no node: a hostile node misleads only its own path. The limit
// of nodes per address group applies to all paths together. The results are merged.
// Source: Baumgart and Mies, "S/Kademlia", ICPADS 2007, section 4.4.
#include <algorithm>

#include "dht/overlays/search.h"

namespace fedge::dht {
namespace {

struct Nearer {
  Id target = 0;
  bool operator()(const Contact& a, const Contact& b) const {
    const Id of_a = xor_distance(a.id, target);
    const Id of_b = xor_distance(b.id, target);
    return of_a != of_b ? of_a < of_b : a.address < b.address;
  }
};

class DisjointSearch final : public Search {
 public:
  DisjointSearch(XorSearchOptions options, std::size_t paths)
      : width_(options.width), per_group_(options.per_group), identities_(options.identities) {
    options.spare *= 2 * paths;  // nodes of other paths are not available to this one
    options.alpha = std::max<std::size_t>(1, options.alpha / paths);
    options.width = (options.width + paths - 1) / paths;
    for (std::size_t i = 0; i < paths; ++i) paths_.push_back(make_xor_search(options));
  }

  void start(const SearchStart& start, Found found, std::span<const Contact> contacts) override {
    start_ = start;
    asked_.clear();
    outcome_.clear();
    std::vector<Contact> sorted(contacts.begin(), contacts.end());
    std::sort(sorted.begin(), sorted.end(), Nearer{start.target});
    std::vector<std::vector<Contact>> shares(paths_.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) shares[i % shares.size()].push_back(sorted[i]);
    for (std::size_t i = 0; i < paths_.size(); ++i) paths_[i]->start(start, found, shares[i]);
    end_if_done();
  }

  std::optional<Contact> next() override {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      while (const auto contact = paths_[i]->next()) {
        if (path_of(contact->address) != nullptr || crowded(*contact)) {
          paths_[i]->silent(*contact);  // on another path, or its group is full
          continue;
        }
        asked_.push_back({contact->address, i, true});
        ++outcome_.messages;
        return contact;
      }
    }
    end_if_done();
    return std::nullopt;
  }

  void answered(const Message& reply) override {
    ++outcome_.messages;
    if (Search* path = path_of(reply.from.address)) path->answered(reply);
    end_if_done();
  }

  void silent(const Contact& who) override {
    ++outcome_.timeouts;
    for (Asked& asked : asked_)
      if (asked.address == who.address) asked.lives = false;
    if (Search* path = path_of(who.address)) path->silent(who);
    end_if_done();
  }

  bool done() const override { return done_; }
  void prefetch() const override {
    for (const auto& path : paths_) path->prefetch();
  }

 private:
  struct Asked {
    Address address = kNobody;
    std::size_t path = 0;
    bool lives = true;  // as far as known
  };

  bool crowded(const Contact& contact) const {
    if (per_group_ == 0) return false;
    const auto same = std::count_if(asked_.begin(), asked_.end(), [&](const Asked& asked) {
      return asked.lives && identities_->group(asked.address) == identities_->group(contact.address);
    });
    return static_cast<std::size_t>(same) >= per_group_;
  }

  Search* path_of(Address address) {
    for (const Asked& asked : asked_)
      if (asked.address == address) return paths_[asked.path].get();
    return nullptr;
  }

  void end_if_done() {
    const auto over = [](const auto& path) { return path->done(); };
    done_ = start_.goal == Goal::kValues && std::any_of(paths_.begin(), paths_.end(), [](const auto& path) {
              return !path->outcome().values.empty();
            });
    done_ = done_ || std::all_of(paths_.begin(), paths_.end(), over);
    if (done_) put_together();
  }

  void put_together() {
    outcome_.nodes.clear();
    for (const auto& path : paths_) {
      const SearchOutcome& found = path->outcome();
      outcome_.add_values(found.values);
      if (!outcome_.holder.known()) outcome_.holder = found.holder;
      outcome_.hops = std::max(outcome_.hops, found.hops);
      outcome_.nodes.insert(outcome_.nodes.end(), found.nodes.begin(), found.nodes.end());
    }
    std::sort(outcome_.nodes.begin(), outcome_.nodes.end(), Nearer{start_.target});
    const auto last =
        std::unique(outcome_.nodes.begin(), outcome_.nodes.end());  // each path contains the searcher
    outcome_.nodes.erase(last, outcome_.nodes.end());
    if (outcome_.nodes.size() > width_) outcome_.nodes.resize(width_);
  }

  std::size_t width_;
  std::size_t per_group_;
  const Identities* identities_;
  SearchStart start_;
  std::vector<std::unique_ptr<Search>> paths_;
  std::vector<Asked> asked_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Search> make_disjoint_search(const XorSearchOptions& options, std::size_t paths) {
  return std::make_unique<DisjointSearch>(options, paths);
}

}  // namespace fedge::dht
