#include "learn/arrays/array_file.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform/files.h"
#include "learn/arrays/safetensors_array.h"
#include "learn/data/idx.h"

namespace fedge::learn {
namespace {

constexpr std::uint64_t kMostPacked = 1032;  // deflate's best ratio

Error damaged(const std::string& name, const std::string& reason) {
  return {ErrorCode::kCorrupt, name + ": the file is damaged or truncated: " + reason};
}

}  // namespace

bool is_idx_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEndings = {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

// The bytes of an NPY file, or the elements of another array, from first to last.
class ArrayStream::Source {
 public:
  virtual ~Source() = default;
  virtual std::uint64_t size() const = 0;
  virtual Result<void> read(std::span<std::byte> bytes, const std::string& name) = 0;
  virtual Result<void> finish(const std::string& name) = 0;
};

class ArrayStream::FileSource final : public Source {
 public:
  explicit FileSource(ReadOnlyFile file, std::uint64_t offset = 0)
      : file_(std::move(file)), offset_(offset) {}
  std::uint64_t size() const override { return file_.size(); }
  Result<void> read(std::span<std::byte> bytes, const std::string&) override {
    FEDGE_TRY_VOID(file_.read(offset_, bytes));
    offset_ += bytes.size();
    return {};
  }
  Result<void> finish(const std::string&) override { return {}; }

 private:
  ReadOnlyFile file_;
  std::uint64_t offset_;
};

// The elements of an IDX file, whose bytes it holds.
class ArrayStream::IdxSource final : public Source {
 public:
  static Result<std::unique_ptr<IdxSource>> open(const std::filesystem::path& path) {
    FEDGE_TRY(bytes, read_file(path, kMostIdxBytes));
    auto source = std::make_unique<IdxSource>(std::move(bytes));
    FEDGE_TRY(reader, IdxReader::open(std::as_bytes(std::span(source->bytes_)), path.string(), 0));
    source->reader_.emplace(std::move(reader));
    return source;
  }
  explicit IdxSource(std::string bytes) : bytes_(std::move(bytes)) {}
  NpyHeader header() const { return {ElementType::kUint8, reader_->dimensions(), reader_->elements()}; }
  std::uint64_t size() const override { return reader_->elements(); }
  Result<void> read(std::span<std::byte> bytes, const std::string&) override {
    return reader_->read({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
  }
  Result<void> finish(const std::string&) override { return reader_->finish(); }

 private:
  static constexpr std::size_t kMostIdxBytes = std::size_t{4} << 30;
  std::string bytes_;
  std::optional<IdxReader> reader_;
};

// A member of a ZIP archive.
class ArrayStream::ArchiveSource final : public Source {
 public:
  static Result<std::unique_ptr<Source>> open(const std::filesystem::path& path, const std::string& array) {
    if (const auto file = ReadOnlyFile::open(path); !file) return file.error();  // absent, or a pipe
    int code = 0;
    zip_t* archive = ::zip_open(path.c_str(), ZIP_RDONLY, &code);
    if (archive == nullptr) {
      zip_error_t error;
      ::zip_error_init_with_code(&error, code);
      const std::string reason = ::zip_error_strerror(&error);
      ::zip_error_fini(&error);
      return damaged(path.string(), reason);
    }
    auto source = std::make_unique<ArchiveSource>(archive);
    const std::string member = array + ".npy";
    zip_stat_t status;
    if (::zip_stat(archive, member.c_str(), 0, &status) != 0)
      return Error{ErrorCode::kNotFound,
                   path.string() + ": there is no array \"" + array + "\"; the file has " + members(archive)};
    constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if ((status.valid & kNeeded) != kNeeded || status.size / kMostPacked > status.comp_size)
      return damaged(path.string(), "array \"" + array + "\" cannot have the size that the archive states");
    source->size_ = status.size;
    source->file_ = ::zip_fopen(archive, member.c_str(), 0);
    if (source->file_ == nullptr) return damaged(path.string(), ::zip_strerror(archive));
    return std::unique_ptr<Source>(std::move(source));
  }
  explicit ArchiveSource(zip_t* archive) : archive_(archive) {}
  ~ArchiveSource() override {
    if (file_ != nullptr) ::zip_fclose(file_);
    ::zip_discard(archive_);
  }
  ArchiveSource(const ArchiveSource&) = delete;
  ArchiveSource& operator=(const ArchiveSource&) = delete;

  std::uint64_t size() const override { return size_; }
  Result<void> read(std::span<std::byte> bytes, const std::string& name) override {
    while (!bytes.empty()) {
      const zip_int64_t count = ::zip_fread(file_, bytes.data(), bytes.size());
      if (count < 0) return damaged(name, ::zip_file_strerror(file_));
      if (count == 0) return damaged(name, "it ends too early");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
  }
  // The library compares the checksum when it reads the end.
  Result<void> finish(const std::string& name) override {
    std::byte more{};
    const zip_int64_t count = ::zip_fread(file_, &more, 1);
    if (count < 0) return damaged(name, ::zip_file_strerror(file_));
    return count == 0 ? Result<void>() : damaged(name, "it is longer than the archive states");
  }

 private:
  static std::string members(zip_t* archive) {
    constexpr zip_int64_t kShown = 20;
    const zip_int64_t count = ::zip_get_num_entries(archive, 0);
    std::string names;
    for (zip_int64_t i = 0; i < count && i < kShown; ++i) {
      const char* entry = ::zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
      std::string name = entry == nullptr ? "" : entry;
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      names += (names.empty() ? "\"" : ", \"") + name.substr(0, 40) + "\"";
    }
    return names.empty() ? "none" : names + (count > kShown ? ", ..." : "");
  }

  zip_t* archive_;
  zip_file_t* file_ = nullptr;
  std::uint64_t size_ = 0;
};

ArrayStream::ArrayStream(std::unique_ptr<Source> source, std::string name)
    : source_(std::move(source)), name_(std::move(name)) {}
ArrayStream::~ArrayStream() = default;
ArrayStream::ArrayStream(ArrayStream&&) noexcept = default;
ArrayStream& ArrayStream::operator=(ArrayStream&&) noexcept = default;

Result<ArrayStream> ArrayStream::open(const std::filesystem::path& path, const std::string& array) {
  const std::string name = path.string() + ": array \"" + array + "\"";
  if (is_idx_name(path.filename().string())) {
    FEDGE_TRY(source, IdxSource::open(path));
    NpyHeader header = source->header();
    ArrayStream stream(std::move(source), path.string());
    stream.header_ = std::move(header);
    return stream;
  }
  if (path.extension() == ".safetensors") {
    FEDGE_TRY(file, ReadOnlyFile::open(path));
    FEDGE_TRY(found, find_safetensors_array(file, array));
    ArrayStream stream(std::make_unique<FileSource>(std::move(file), found.offset), name);
    stream.header_ = std::move(found.header);
    return stream;
  }
  if (path.extension() == ".npz") {
    FEDGE_TRY(member, ArchiveSource::open(path, array));
    return open_npy(std::move(member), name);
  }
  if (path.extension() == ".npy") {
    FEDGE_TRY(file, ReadOnlyFile::open(path));
    return open_npy(std::make_unique<FileSource>(std::move(file)), path.string());
  }
  return Error{
      ErrorCode::kUnsupported,
      path.string() + ": the name of a file of arrays ends with .npz, .npy, .safetensors, -ubyte or .idx"};
}

Result<ArrayStream> ArrayStream::open_npy(std::unique_ptr<Source> source, std::string name) {
  ArrayStream stream(std::move(source), std::move(name));
  std::vector<std::byte> start(kNpyPreamble);
  if (stream.source_->size() < start.size())
    return Error{ErrorCode::kCorrupt, stream.name_ + " is not an NPY file"};
  FEDGE_TRY_VOID(stream.read(start));
  FEDGE_TRY(offset, npy_data_offset(start, stream.name_));
  if (stream.source_->size() < offset || offset < start.size())
    return Error{ErrorCode::kCorrupt, stream.name_ + " ends within its NPY header"};
  start.resize(offset);
  FEDGE_TRY_VOID(stream.read(std::span(start).subspan(kNpyPreamble)));
  FEDGE_TRY(header, parse_npy_header(start, stream.name_));
  const std::uint64_t expected = offset + std::uint64_t{header.elements} * bytes_of(header.type);
  if (stream.source_->size() != expected)
    return Error{ErrorCode::kCorrupt, stream.name_ + " has " + std::to_string(stream.source_->size()) +
                                          " bytes, but its header describes " + std::to_string(expected)};
  stream.header_ = std::move(header);
  return stream;
}

Result<void> ArrayStream::read(std::span<std::byte> bytes) { return source_->read(bytes, name_); }
Result<void> ArrayStream::finish() { return source_->finish(name_); }

}  // namespace fedge::learn
