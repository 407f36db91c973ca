#include "learn/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/check.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaxDeflateRatio = 1032;
constexpr std::size_t kWindow = std::size_t{1} << 30;  // zlib counts in 32 bits: larger inputs go in parts
constexpr unsigned kUnsignedByte = 0x08;

Error corrupt_idx(const std::string& name, const std::string& what) {
  return {ErrorCode::kCorrupt, name + ": " + what};
}

unsigned byte_at(std::span<const std::byte> bytes, std::size_t index) {
  return std::to_integer<unsigned>(bytes[index]);
}

}  // namespace

// Reads the unpacked bytes of a plain or gzip file in order.
class IdxReader::Source {
 public:
  explicit Source(std::span<const std::byte> bytes) : bytes_(bytes) {
    packed_ = bytes.size() >= 2 && byte_at(bytes, 0) == 0x1f && byte_at(bytes, 1) == 0x8b;
    if (packed_) FEDGE_CHECK(inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK, "zlib cannot be initialised");
  }
  ~Source() {
    if (packed_) inflateEnd(&stream_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Upper bound of the number of unpacked bytes.
  std::size_t capacity() const {
    if (!packed_) return bytes_.size();
    return bytes_.size() > std::numeric_limits<std::size_t>::max() / kMaxDeflateRatio
               ? std::numeric_limits<std::size_t>::max()
               : bytes_.size() * kMaxDeflateRatio;
  }

  // Fills `out` as far as data remains and returns the number of bytes read.
  Result<std::size_t> read(std::span<std::uint8_t> out, const std::string& name) {
    return packed_ ? inflate_into(out, name) : copy_into(out);
  }

  // Must be called after the last expected byte. kCorrupt if more data follows or the trailer is missing.
  Result<void> finish(const std::string& name) {
    std::uint8_t extra = 0;
    FEDGE_TRY(got, read({&extra, 1}, name));
    if (got > 0) return corrupt_idx(name, "contains more data than its header declares");
    if (packed_ && !ended_) return corrupt_idx(name, "is truncated: the end of the gzip data is missing");
    if (next_ < bytes_.size()) return corrupt_idx(name, "has extra bytes after the end of the gzip data");
    return {};
  }

 private:
  std::size_t copy_into(std::span<std::uint8_t> out) {
    const std::size_t count = std::min(out.size(), bytes_.size() - next_);
    if (count > 0) std::memcpy(out.data(), bytes_.data() + next_, count);
    next_ += count;
    return count;
  }

  Result<std::size_t> inflate_into(std::span<std::uint8_t> out, const std::string& name) {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      const std::size_t in = std::min(bytes_.size() - next_, kWindow);
      const std::size_t space = std::min(out.size() - done, kWindow);
      // zlib does not write through next_in; its type predates const.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes_.data() + next_));
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = out.data() + done;
      stream_.avail_out = static_cast<uInt>(space);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t used = in - stream_.avail_in;
      const std::size_t made = space - stream_.avail_out;
      next_ += used;
      done += made;
      if (status == Z_STREAM_END) {
        ended_ = true;
      } else if (status == Z_MEM_ERROR) {
        return Error{ErrorCode::kResource, name + ": not enough memory to decompress it"};
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        return corrupt_idx(name, damage());
      } else if (used == 0 && made == 0) {
        return done;  // the input is exhausted
      }
    }
    return done;
  }

  std::string damage() const {
    const std::string reason = stream_.msg == nullptr ? "unreadable" : stream_.msg;
    if (reason == "incorrect data check") return "its CRC-32 does not match its content";
    if (reason == "incorrect length check") return "its length does not match its content";
    return "its gzip data is damaged (" + reason + ")";
  }

  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;  // first byte not yet consumed
  bool packed_ = false;
  bool ended_ = false;  // zlib has verified the trailer
  z_stream stream_{};
};

IdxReader::IdxReader(std::unique_ptr<Source> source, std::string name)
    : source_(std::move(source)), name_(std::move(name)) {}
IdxReader::~IdxReader() = default;
IdxReader::IdxReader(IdxReader&&) noexcept = default;
IdxReader& IdxReader::operator=(IdxReader&&) noexcept = default;

Result<IdxReader> IdxReader::open(std::span<const std::byte> bytes, const std::string& name,
                                  std::size_t rank) {
  FEDGE_CHECK(rank < 256, "an IDX file has 1 to 255 dimensions");
  IdxReader reader(std::make_unique<Source>(bytes), name);
  std::vector<std::uint8_t> header(4);
  FEDGE_TRY(got, reader.source_->read(header, name));
  if (got < 4 || header[0] != 0 || header[1] != 0) return corrupt_idx(name, "is not an IDX file");
  if (header[2] != kUnsignedByte) {
    return corrupt_idx(name,
                       "has elements of type " + std::to_string(header[2]) + ", expected unsigned bytes (8)");
  }
  if (header[3] == 0 || (rank != 0 && header[3] != rank)) {
    return corrupt_idx(name, "has " + std::to_string(header[3]) + " dimensions, expected " +
                                 (rank != 0 ? std::to_string(rank) : "at least 1"));
  }
  rank = header[3];
  header.resize(4 + 4 * rank);
  FEDGE_TRY(more, reader.source_->read(std::span(header).subspan(4), name));
  if (4 + more < header.size()) return corrupt_idx(name, "is truncated: its header is incomplete");
  reader.elements_ = 1;
  const std::size_t limit = reader.source_->capacity();
  for (std::size_t i = 0; i < rank; ++i) {
    std::size_t dimension = 0;
    for (std::size_t j = 0; j < 4; ++j) dimension = dimension << 8 | header[4 + 4 * i + j];
    if (dimension == 0) return corrupt_idx(name, "has a dimension of size 0");
    if (reader.elements_ > limit / dimension) {
      return corrupt_idx(
          name, "declares more elements than its " + std::to_string(bytes.size()) + " bytes can contain");
    }
    reader.elements_ *= dimension;
    reader.dimensions_.push_back(dimension);
  }
  return reader;
}

Result<void> IdxReader::read(std::span<std::uint8_t> out) {
  FEDGE_TRY(got, source_->read(out, name_));
  if (got < out.size())
    return corrupt_idx(name_, "is truncated: it ends before the last element that its header declares");
  return {};
}

Result<void> IdxReader::finish() { return source_->finish(name_); }

}  // namespace fedge::learn
