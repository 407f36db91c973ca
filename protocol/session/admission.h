// Admission: limits the connections that are open before their Hello, in total and for each address. Above
// the total the oldest is evicted, so that strangers cannot lock others out by only connecting. Above an
// address's share the new one is refused. The place of a connection that was not admitted stays taken until
// the second forgive() afterwards. Called at intervals, that limits an address's rate of attempts. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

namespace fedge::protocol {

class Admission : public std::enable_shared_from_this<Admission> {
 public:
  // Holds a place while it lives; after let_in() the destructor frees the place at once.
  class Ticket {
   public:
    ~Ticket();
    void let_in() { let_in_ = true; }
    // `evict` must close the connection and destroy the ticket, since another connection needs the place.
    void on_evicted(std::function<void()> evict);

   private:
    friend class Admission;
    struct Place {
      std::string address;
      std::function<void()> evict;
    };
    std::shared_ptr<Admission> admission_;
    std::list<Place>::iterator place_;
    bool let_in_ = false;
  };

  Admission(std::size_t max_total, std::size_t max_per_address)
      : max_total_(max_total), max_per_address_(max_per_address) {}

  // Null if the address has used its share, or if no place can be freed.
  std::unique_ptr<Ticket> admit(const std::string& address);
  // Frees the places that were already refused at the previous call.
  void forgive();
  std::size_t total() const { return places_.size() + refused_.size(); }

 private:
  void release(std::list<Ticket::Place>::iterator place, bool let_in);
  void make_room();
  void forget(const std::string& address);
  void forget_oldest();

  std::size_t max_total_;
  std::size_t max_per_address_;
  std::list<Ticket::Place> places_;  // oldest first
  std::deque<std::string> refused_;  // addresses not admitted, oldest first
  std::size_t due_ = 0;              // number of them to free at the next forgive()
  std::map<std::string, std::size_t> by_address_;
};

}  // namespace fedge::protocol
