// Changes the symbols of an object file, in place (cmake/troupe_targets.cmake):
//   object_symbols show FILE.o    makes hidden ones visible: tests look at what libtroupe.so keeps
//   to itself; object_symbols weaken FILE.o  makes unique ones weak: inline variables of libraries
//   that a program has
//                                 too, once they no longer stand in groups of which the linker
//                                 takes one.

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool show = std::strcmp(argv[1], "show") == 0;
  std::ifstream in(argv[2], std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), {});
  Elf64_Ehdr header;
  if (file.size() < sizeof(header)) return 1;
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_REL ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    std::cerr << argv[2] << " is not an object file of 64 bits\n";
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
      char& info = file.at(section.sh_offset + at + offsetof(Elf64_Sym, st_info));
      if (show && ELF64_ST_VISIBILITY(other) == STV_HIDDEN) other = (other & ~3) | STV_DEFAULT;
      if (!show && ELF64_ST_BIND(static_cast<unsigned char>(info)) == STB_GNU_UNIQUE) {
        info = static_cast<char>(ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(info)));
      }
    }
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << file << std::flush;
  return out ? 0 : 1;
}
