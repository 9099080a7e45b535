// Changes the symbols of an object file, or of all in an archive, in place
// (cmake/troupe_targets.cmake).
//
//     object_symbols show FILE
//
// makes hidden ones visible: tests look at what libtroupe.so keeps to itself.
//
//     object_symbols weaken FILE
//
// makes unique ones weak: inline variables of libraries that a program has too, once they no longer
// stand in groups of which the linker takes one.

#include <ar.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>

namespace {

// A T at an offset of the file, which need not be aligned for it.
template <typename T>
T Take(std::span<char> file, size_t offset) {
  T value;
  std::memcpy(&value, file.subspan(offset, sizeof(T)).data(), sizeof(T));
  return value;
}

bool IsObject(std::span<char> file) {
  if (file.size() < sizeof(Elf64_Ehdr)) return false;
  const auto header = Take<Elf64_Ehdr>(file, 0);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_REL &&
         header.e_ident[EI_CLASS] == ELFCLASS64;
}

void ChangeSymbols(std::span<char> file, bool show) {
  const auto header = Take<Elf64_Ehdr>(file, 0);
  const auto first = Take<Elf64_Shdr>(file, header.e_shoff);
  const size_t sections = header.e_shnum != 0 ? header.e_shnum : first.sh_size;  // if many
  for (size_t i = 1; i < sections; ++i) {
    const auto section = Take<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_SYMTAB) continue;
    for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      const std::span<char> bytes = file.subspan(section.sh_offset + at, sizeof(Elf64_Sym));
      auto symbol = Take<Elf64_Sym>(bytes, 0);
      if (show && ELF64_ST_VISIBILITY(symbol.st_other) == STV_HIDDEN) {
        symbol.st_other = (symbol.st_other & ~3) | STV_DEFAULT;
      }
      if (!show && ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE) {
        symbol.st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol.st_info));
      }
      std::memcpy(bytes.data(), &symbol, sizeof(symbol));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool show = std::strcmp(argv[1], "show") == 0;
  std::ifstream in(argv[2], std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), {});
  const std::span<char> all(file);
  if (file.starts_with(ARMAG)) {
    // A header and a member, again and again, each at an even offset. Tables of names are no
    // objects.
    for (size_t at = SARMAG; at + sizeof(ar_hdr) <= file.size();) {
      const auto header = Take<ar_hdr>(all, at);
      const size_t size = std::stoull(std::string(header.ar_size, sizeof(header.ar_size)));
      at += sizeof(ar_hdr);
      if (IsObject(all.subspan(at, size))) ChangeSymbols(all.subspan(at, size), show);
      at += size + size % 2;
    }
  } else if (IsObject(all)) {
    ChangeSymbols(all, show);
  } else {
    std::cerr << argv[2] << " is neither an object file of 64 bits nor an archive\n";
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << file << std::flush;
  return out ? 0 : 1;
}
