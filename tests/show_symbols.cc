// Makes the hidden symbols of an object file visible, in place: `show_symbols FILE.o`. Tests look
// at what libtroupe.so keeps to itself (cmake/troupe_targets.cmake).

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream in(argv[1], std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), {});
  Elf64_Ehdr header;
  if (file.size() < sizeof(header)) return 1;
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_REL ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    std::cerr << argv[1] << " is not an object file of 64 bits\n";
    return 1;
  }
  Elf64_Shdr section;
  std::memcpy(&section, &file.at(header.e_shoff), sizeof(section));
  const size_t sections = header.e_shnum != 0 ? header.e_shnum : section.sh_size;  // if many
  for (size_t i = 1; i < sections; ++i) {
    std::memcpy(&section, &file.at(header.e_shoff + i * sizeof(section)), sizeof(section));
    if (section.sh_type != SHT_SYMTAB) continue;
    for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      char& other = file.at(section.sh_offset + at + offsetof(Elf64_Sym, st_other));
      if (ELF64_ST_VISIBILITY(other) == STV_HIDDEN) other = (other & ~3) | STV_DEFAULT;
    }
  }
  std::ofstream out(argv[1], std::ios::binary);
  out << file << std::flush;
  return out ? 0 : 1;
}
