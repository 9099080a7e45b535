#include "api/cli/certificates_command.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

// Clocks differ: a certificate that is made now is valid on a machine that is late.
constexpr long kBackdate = 3600;  // NOLINT: OpenSSL's type; seconds
constexpr long kDay = 86400;      // NOLINT
constexpr size_t kMaxCommonName = 64;
constexpr char kAuthorityFiles[] = "ca";

/// What becomes two files, called `name`. Without a key: one file.
struct Pair {
  std::string name;
  Certificate certificate;
  Key key;
};

absl::Status OpensslError(const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  return absl::InternalError(StrCat(what, ": ", reason != nullptr ? reason : "OpenSSL failed"));
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// Who it is and until when, without extensions.
bool Describe(X509* certificate, EVP_PKEY* key, const std::string& name, int days) {
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return false;
  serial[0] &= 0x7f;  // Positive.
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number(BN_bin2bn(serial, sizeof(serial), nullptr));
  const std::string common = name.substr(0, kMaxCommonName);
  return number != nullptr && X509_set_version(certificate, 2) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kBackdate) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), days * kDay) != nullptr &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(common.c_str()), -1, -1,
                                    0) == 1;
}

bool Sign(X509* certificate, const Pair& authority) {
  X509* const issuer = authority.certificate.get();
  return X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
         AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid") &&
         X509_sign(certificate, authority.key.get(), EVP_sha256()) != 0;
}

absl::StatusOr<Pair> NewPair(const std::string& file, const std::string& name, int days) {
  Pair pair{file, Certificate(X509_new()), Key(EVP_EC_gen("P-256"))};
  if (pair.certificate == nullptr || pair.key == nullptr ||
      !Describe(pair.certificate.get(), pair.key.get(), name, days)) {
    return OpensslError(StrCat("cannot make a certificate for ", name));
  }
  return pair;
}

absl::StatusOr<Pair> MakeAuthority(int days) {
  TROUPE_ASSIGN_OR_RETURN(Pair pair, NewPair(kAuthorityFiles, "troupe authority", days));
  X509* const certificate = pair.certificate.get();
  if (AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(certificate, certificate, NID_subject_key_identifier, "hash") &&
      Sign(certificate, pair)) {
    return pair;
  }
  return OpensslError("cannot make an authority");
}

/// `names`: what the certificate lets its holder be, as URIs.
absl::StatusOr<Pair> Issue(const Pair& authority, const std::string& file, const std::string& name,
                           const std::string& names, int days) {
  TROUPE_ASSIGN_OR_RETURN(Pair pair, NewPair(file, name, days));
  X509* const certificate = pair.certificate.get();
  X509* const issuer = authority.certificate.get();
  if (AddExtension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
      AddExtension(certificate, issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
      AddExtension(certificate, issuer, NID_subject_key_identifier, "hash") &&
      AddExtension(certificate, issuer, NID_subject_alt_name, names) &&
      Sign(certificate, authority)) {
    return pair;
  }
  return OpensslError(StrCat("cannot make a certificate for ", name));
}

/// The object that `read` finds in a PEM file.
template <typename T, typename Read>
absl::StatusOr<T> FromPem(const std::string& path, Read read) {
  const std::unique_ptr<BIO, Freed<BIO_free>> in(BIO_new_file(path.c_str(), "r"));
  if (in == nullptr) return absl::ErrnoToStatus(errno, path);
  // A passphrase would be asked for on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  T object(read(in.get(), nullptr, no_passphrase, nullptr));
  if (object != nullptr) return object;
  return InvalidArgument(path, " does not hold what it should, in PEM");
}

absl::StatusOr<Pair> ReadAuthority(const std::string& folder) {
  const std::string stem = StrCat(folder, "/", kAuthorityFiles);
  TROUPE_ASSIGN_OR_RETURN(Certificate certificate,
                          FromPem<Certificate>(stem + ".pem", PEM_read_bio_X509));
  TROUPE_ASSIGN_OR_RETURN(Key key, FromPem<Key>(stem + ".key", PEM_read_bio_PrivateKey));
  if (X509_check_private_key(certificate.get(), key.get()) == 1) {
    return Pair{kAuthorityFiles, std::move(certificate), std::move(key)};
  }
  return InvalidArgument(stem, ".key does not belong to ", stem, ".pem");
}

absl::StatusOr<std::vector<Pair>> MakeAll(const ClusterSpec& cluster,
                                          const CertificatesOptions& options) {
  const int days = options.days;
  std::vector<Pair> pairs;
  TROUPE_ASSIGN_OR_RETURN(Pair authority, options.authority.empty()
                                              ? MakeAuthority(days)
                                              : ReadAuthority(options.authority));
  for (const TaskId& task : cluster.tasks()) {
    // A task that joins comes as a client first.
    TROUPE_ASSIGN_OR_RETURN(
        Pair pair, Issue(authority, TaskFiles(task), task.ToString(),
                         StrCat("URI:troupe:", task.ToString(), ",URI:troupe:client"), days));
    pairs.push_back(std::move(pair));
  }
  TROUPE_ASSIGN_OR_RETURN(
      Pair client, Issue(authority, kClientFiles, "troupe client", "URI:troupe:client", days));
  pairs.push_back(std::move(client));
  if (!options.authority.empty()) authority.key.reset();  // It stays where it is.
  pairs.push_back(std::move(authority));
  return pairs;
}

/// Writes a file that must not exist.
absl::Status WriteNew(const std::string& path, mode_t mode, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return absl::ErrnoToStatus(errno, StrCat("cannot write ", path));
  const bool written = write(fd, text.data(), text.size()) == std::ssize(text);
  const int error = errno;
  if (close(fd) == 0 && written) return absl::OkStatus();
  unlink(path.c_str());
  return absl::ErrnoToStatus(written ? errno : error, StrCat("cannot write ", path));
}

template <typename Write>
absl::StatusOr<std::string> ToPem(Write write) {
  const std::unique_ptr<BIO, Freed<BIO_free>> out(BIO_new(BIO_s_secmem()));
  if (out == nullptr || write(out.get()) != 1) return OpensslError("cannot write PEM");
  char* text = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::Status WritePair(const std::string& folder, const Pair& pair) {
  TROUPE_ASSIGN_OR_RETURN(const std::string certificate, ToPem([&](BIO* out) {
                            return PEM_write_bio_X509(out, pair.certificate.get());
                          }));
  const std::string stem = StrCat(folder, "/", pair.name);
  TROUPE_RETURN_IF_ERROR(
      WriteNew(stem + ".pem", S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, certificate));
  if (pair.key == nullptr) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string key, ToPem([&](BIO* out) {
                            return PEM_write_bio_PrivateKey(out, pair.key.get(), nullptr, nullptr,
                                                            0, nullptr, nullptr);
                          }));
  return WriteNew(stem + ".key", S_IRUSR | S_IWUSR, key);
}

}  // namespace

std::string TaskFiles(const TaskId& task) { return StrCat("job-", task.job, "-task-", task.task); }

absl::StatusOr<int> CertificatesCommand(const CertificatesOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterSpec::ReadFile(options.cluster_file));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, MakeAll(cluster, options));
  if (mkdir(options.folder.c_str(), S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH) != 0 &&
      errno != EEXIST) {
    return absl::ErrnoToStatus(errno, StrCat("cannot make the folder ", options.folder));
  }
  for (const Pair& pair : pairs) {
    for (const char* end : {".pem", ".key"}) {
      const std::string path = StrCat(options.folder, "/", pair.name, end);
      struct stat about {};
      if (lstat(path.c_str(), &about) == 0) {
        return absl::AlreadyExistsError(StrCat(path, " is there; nothing is overwritten"));
      }
    }
  }
  for (const Pair& pair : pairs) TROUPE_RETURN_IF_ERROR(WritePair(options.folder, pair));
  std::cout << options.folder << ": certificates for " << pairs.size() - 2
            << " tasks and for clients, valid for " << options.days << " days\n";
  return 0;
}

}  // namespace troupe::cli
