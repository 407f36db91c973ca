// DescriptorRecords: Asio keeps a small record for each descriptor in use and, once made, until the
// io_context ends. Made one at a time they lie between the links' memory, and each holds a page of it when
// the links have gone: made ahead, in batches, they lie together. Private to session/.
#pragma once

#include <boost/asio/io_context.hpp>

namespace fedge::protocol {

class DescriptorRecords {
 public:
  // Called with each new descriptor; the system hands out the smallest number that is free.
  void make_room_for(boost::asio::io_context& io, int descriptor);

 private:
  int made_ = 0;
};

}  // namespace fedge::protocol
