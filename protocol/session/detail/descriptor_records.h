// DescriptorRecords: Asio keeps a small record for each descriptor number until the io_context ends.
// Records made one at a time lie between the links' memory, and each keeps a page from being freed after
// the links have ended. Made in advance in batches, they lie together. Private to session/.
#pragma once

#include <boost/asio/io_context.hpp>

namespace fedge::protocol {

class DescriptorRecords {
 public:
  // Call with each new descriptor; the system assigns the smallest free number.
  void make_room_for(boost::asio::io_context& io, int descriptor);

 private:
  int made_ = 0;
};

}  // namespace fedge::protocol
