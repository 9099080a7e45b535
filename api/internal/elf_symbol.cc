// Layout: System V ABI, "Object Files" (gABI 4.1), by the structs of <elf.h>.
#include "api/internal/elf_symbol.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "devices/status_macros.h"

namespace troupe {
namespace {

/// A file of which pieces are read.
class File {
 public:
  ~File() {
    if (fd_ >= 0) close(fd_);
  }

  absl::Status Open(const std::string& name) {
    fd_ = open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) {
      const int error = errno;
      const std::string text = StrCat("library '", name, "': ", std::strerror(error));
      if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
      return absl::InvalidArgumentError(text);
    }
    struct stat info;
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
      return InvalidArgument("library '", name, "' is no regular file");
    }
    size_ = static_cast<uint64_t>(info.st_size);
    return absl::OkStatus();
  }

  bool Contains(uint64_t offset, uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }

  /// False if the file does not have so many bytes there.
  bool Read(uint64_t offset, void* to, size_t bytes) const {
    if (!Contains(offset, bytes)) return false;
    char* out = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = pread(fd_, out, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      out += got;
      offset += static_cast<uint64_t>(got);
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }

  /// `count` structs that stand one after the other; empty if they are not there.
  template <typename T>
  std::vector<T> ReadArray(uint64_t offset, uint64_t count) const {
    std::vector<T> items;
    if (count > size_ / sizeof(T) || !Contains(offset, count * sizeof(T))) return items;
    items.resize(count);
    if (!Read(offset, items.data(), count * sizeof(T))) items.clear();
    return items;
  }

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// The symbol's entry in the table of what the library exports.
absl::StatusOr<Elf64_Sym> FindSymbol(const File& file, const Elf64_Ehdr& header,
                                     std::string_view symbol) {
  const auto sections = file.ReadArray<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  if (sections.empty()) return InvalidArgument("it has no table of sections");
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= sections.size()) break;
    const Elf64_Shdr& names = sections[section.sh_link];
    const auto symbols =
        file.ReadArray<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
    const auto text = file.ReadArray<char>(names.sh_offset, names.sh_size);
    for (const Elf64_Sym& entry : symbols) {
      if (entry.st_shndx == SHN_UNDEF || entry.st_name >= text.size()) continue;
      const char* name = text.data() + entry.st_name;
      const size_t room = text.size() - entry.st_name;
      if (symbol.size() < room && std::memcmp(name, symbol.data(), symbol.size()) == 0 &&
          name[symbol.size()] == '\0') {
        return entry;
      }
    }
  }
  return InvalidArgument("it does not export '", symbol, "'");
}

absl::StatusOr<std::string> Find(const File& file, std::string_view symbol, size_t max_bytes) {
  Elf64_Ehdr header;
  if (!file.Read(0, &header, sizeof(header)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_type != ET_DYN) {
    return InvalidArgument("it is no shared library");
  }
  const int order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != order ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return InvalidArgument("it is a library for another machine");
  }
  TROUPE_ASSIGN_OR_RETURN(const Elf64_Sym found, FindSymbol(file, header, symbol));
  if (ELF64_ST_TYPE(found.st_info) != STT_OBJECT) {
    return InvalidArgument("its symbol '", symbol, "' is no data");
  }
  for (const auto& segment : file.ReadArray<Elf64_Phdr>(header.e_phoff, header.e_phnum)) {
    if (segment.p_type != PT_LOAD || found.st_value < segment.p_vaddr) continue;
    const uint64_t at = found.st_value - segment.p_vaddr;
    if (at >= segment.p_filesz) continue;
    const uint64_t bytes = std::min<uint64_t>({max_bytes, found.st_size, segment.p_filesz - at});
    std::string data(bytes, '\0');
    if (segment.p_offset + at >= at && file.Read(segment.p_offset + at, data.data(), bytes)) {
      return data;
    }
  }
  return InvalidArgument("the data of its symbol '", symbol, "' is not in the file");
}

}  // namespace

absl::StatusOr<std::string> ReadElfSymbol(const std::string& name, std::string_view symbol,
                                          size_t max_bytes) {
  File file;
  TROUPE_RETURN_IF_ERROR(file.Open(name));
  absl::StatusOr<std::string> data = Find(file, symbol, max_bytes);
  if (data.ok()) return data;
  return InvalidArgument("library '", name, "': ", data.status().message());
}

}  // namespace troupe
