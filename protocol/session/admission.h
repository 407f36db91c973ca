// Admission: how many connections may be open before their Hello, in all and from one address. Above
// the total the oldest gives way, so that strangers who only connect cannot lock others out; above an
// address's share the new one is refused. A place whose connection was not let in stays taken until the
// second forgive() from then: called at intervals, that bounds how often an address can try. Not thread-safe.
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
  // Holds a place while it lives; after let_in() it gives it back at once.
  class Ticket {
   public:
    ~Ticket();
    void let_in() { let_in_ = true; }
    // What to do when the place is needed for another: close the connection and destroy the ticket.
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

  // Null if the address has its share, or if nobody gives way.
  std::unique_ptr<Ticket> admit(const std::string& address);
  // Frees the places of those who had been refused when it was called last.
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
  std::deque<std::string> refused_;  // their addresses, oldest first
  std::size_t due_ = 0;              // so many of them are freed next
  std::map<std::string, std::size_t> by_address_;
};

}  // namespace fedge::protocol
