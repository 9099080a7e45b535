/// TLS between tasks: both sides show a certificate of the cluster's authority.
#ifndef TROUPE_NET_TLS_H_
#define TROUPE_NET_TLS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "net/byte_stream.h"

namespace troupe {

/// PEM files. All three are needed: there is no anonymous TLS, and none of one side only.
struct TlsFiles {
  std::string certificate;  ///< This task's, followed by those between it and the authority's.
  std::string key;          ///< Belongs to the certificate; without a passphrase.
  std::string authority;    ///< Certificates that every peer's must descend from.
};

/// Certificates and settings of a task, read once. TLS 1.2 and 1.3. Thread-safe.
class TlsContext {
 public:
  /// NotFound, InvalidArgument: names the file and what is wrong with it, a key that does not
  /// belong to the certificate and a certificate that is out of date included.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Create(const TlsFiles& files);
  /// The same; nullptr if no file is named. InvalidArgument if only some are.
  static absl::StatusOr<std::shared_ptr<TlsContext>> CreateIfAny(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// As `ByteStream::CheckPeer`, of this side's own certificate.
  absl::Status CheckOwn(const std::string& task) const;
  /// A stream on a connected socket, of the side that connects or the one that answers.
  std::unique_ptr<ByteStream> MakeStream(int socket, bool connecting) const;

 private:
  TlsContext() = default;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_NET_TLS_H_
