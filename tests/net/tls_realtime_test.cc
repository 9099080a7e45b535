// Mutual TLS between transports. The authority and the certificates are made here.

#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>

#include "devices/status_macros.h"
#include "tests/net/raw_socket.h"
#include "tests/net/recording_sink.h"
#include "tests/net/tensors.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0";

constexpr char kClient[] = "client:1f";
// Alternative names of certificates, as OpenSSL takes them.
constexpr char kNamesPs[] = "URI:troupe:/job:ps/replica:0/task:0";
constexpr char kNamesWorker[] = "URI:troupe:/job:worker/replica:0/task:0";
constexpr char kNamesBoth[] =
    "URI:troupe:/job:ps/replica:0/task:0,IP:127.0.0.1,URI:troupe:/job:worker/replica:0/task:0";
constexpr char kNamesClient[] = "URI:troupe:client";

std::string Message(const absl::Status& status) { return std::string(status.message()); }

/// An authority and what it signs, in files that live as long as the program.
class Authority {
 public:
  explicit Authority(const std::string& name)
      : prefix_(StrCat(::testing::TempDir(), "tls_", getpid(), "_", name, "_")) {
    key_ = EVP_EC_gen("P-256");
    certificate_ = Sign(name, key_, nullptr, 0, 3600, true);
    Write(file(), certificate_);
  }
  ~Authority() {
    EVP_PKEY_free(key_);
    X509_free(certificate_);
  }
  std::string file() const { return prefix_ + "ca.pem"; }

  /// Files of a certificate that is valid from and until so many seconds from now.
  TlsFiles Issue(const std::string& name, long from = -3600, long until = 3600,
                 const char* alternative = kNamesBoth) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = Sign(name, key, alternative, from, until, false);
    const std::string stem = prefix_ + std::to_string(serial_);
    TlsFiles files = {stem + ".crt", stem + ".key", file()};
    Write(files.certificate, certificate);
    std::FILE* out = std::fopen(files.key.c_str(), "w");
    PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(out);
    EVP_PKEY_free(key);
    X509_free(certificate);
    return files;
  }

 private:
  static void Write(const std::string& file, X509* certificate) {
    std::FILE* out = std::fopen(file.c_str(), "w");
    PEM_write_X509(out, certificate);
    std::fclose(out);
  }
  X509* Sign(const std::string& name, EVP_PKEY* key, const char* alternative, long from, long until,
             bool authority) {
    X509* certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(certificate), authority ? -7200 : from);
    X509_gmtime_adj(X509_getm_notAfter(certificate), until);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, authority ? subject : X509_get_subject_name(certificate_));
    const auto add = [&](int nid, const char* value) {
      X509V3_CTX context;
      X509V3_set_ctx(&context, authority ? certificate : certificate_, certificate, nullptr,
                     nullptr, 0);
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
      X509_add_ext(certificate, extension, -1);
      X509_EXTENSION_free(extension);
    };
    if (authority) add(NID_basic_constraints, "critical,CA:TRUE");
    if (alternative != nullptr) add(NID_subject_alt_name, alternative);
    X509_sign(certificate, key_, EVP_sha256());
    return certificate;
  }

  std::string prefix_;
  long serial_ = 0;
  EVP_PKEY* key_;
  X509* certificate_ = nullptr;
};

Authority& Ours() {
  static Authority* authority = new Authority("ours");
  return *authority;
}

TransportOptions With(const TlsFiles& files) {
  TransportOptions options;
  auto context = TlsContext::Create(files);
  EXPECT_TRUE(context.ok()) << context.status();
  if (context.ok()) options.tls = *std::move(context);
  return options;
}

TEST(Tls, CarriesTensorsBothWays) {
  Task ps(kPs, With(Ours().Issue("ps"))), worker(kWorker, With(Ours().Issue("worker")));
  const auto connected = ConnectNow(*worker.transport, ps.address);
  ASSERT_TRUE(connected.ok()) << connected.status();
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.connected.size() == 1; }));
  Tensor large = Tensor::Uninitialized(ElementType::kInt64, Shape({1 << 20}));
  std::iota(large.mutable_data<int64_t>(), large.mutable_data<int64_t>() + (1 << 20), 5);
  const std::vector<Tensor> tensors = TensorsOfAllTypes();
  for (const auto& [to, sink] : {std::pair<Peer*, RecordingSink*>(connected->get(), &ps.sink),
                                 {ps.sink.connected[0].get(), &worker.sink}}) {
    std::vector<SendItem> items;
    for (size_t i = 0; i < tensors.size(); ++i) items.push_back({1, i, 0, false, tensors[i]});
    for (uint64_t i = 0; i < 4; ++i) items.push_back({1, 1000, 0, false, large});
    ASSERT_TRUE(to->Send(absl::MakeSpan(items)).ok());
    ASSERT_TRUE(
        sink->Await([&, sink = sink] { return sink->tensors.size() == tensors.size() + 4; }));
    for (const ReceivedTensor& got : sink->tensors) {
      EXPECT_TRUE(SameTensor(got.tensor, got.key == 1000 ? large : tensors[got.key])) << got.key;
    }
  }
  worker.Stop(std::chrono::seconds(1));
  ASSERT_TRUE(ps.sink.Await([&] { return ps.sink.lost.size() == 1; }));
  EXPECT_THAT(Message(ps.sink.Get(ps.sink.lost)[0].second), HasSubstr("the task stops"));
}

/// Tries to connect the worker to the ps, and returns what it says when that does not come about.
/// The ps says `said` of one of the two streams; what becomes of the other, which the worker gives
/// up then, is a matter of chance.
std::string Refused(const TransportOptions& ps_options, const TransportOptions& worker_options,
                    const std::string& said, const char* worker_name = kWorker) {
  Task ps(kPs, ps_options), worker(worker_name, worker_options);
  const auto peer = ConnectNow(*worker.transport, ps.address);
  EXPECT_FALSE(peer.ok());
  std::string all;
  EXPECT_TRUE(ps.sink.Await([&] {
    all.clear();
    for (const absl::Status& why : ps.sink.strangers) all += Message(why) + "\n";
    return all.find(said) != std::string::npos;
  })) << all;
  EXPECT_TRUE(ps.sink.Get(ps.sink.connected).empty());
  EXPECT_THAT(Message(peer.status()), HasSubstr(ps.address));
  return Message(peer.status());
}

TEST(Tls, AnotherAuthorityIsRefused) {
  Authority theirs("theirs");
  TlsFiles stranger = theirs.Issue("stranger");
  stranger.authority = Ours().file();  // It accepts us, we do not accept it.
  std::string told =
      Refused(With(Ours().Issue("ps")), With(stranger), "the peer's certificate is refused");
  EXPECT_THAT(told, HasSubstr("refuses this task's certificate"));
  EXPECT_THAT(told, HasSubstr("it is of another authority"));
  told = Refused(With(stranger), With(Ours().Issue("worker")), "refuses this task's certificate");
  EXPECT_THAT(told, HasSubstr("the peer's certificate is refused"));
  EXPECT_THAT(told, HasSubstr("it is of another authority"));
}

TEST(Tls, ExpiredCertificatesAreRefused) {
  const auto expired = TlsContext::Create(Ours().Issue("old", -3600, -60));
  EXPECT_THAT(Message(expired.status()), HasSubstr("has expired"));
  const auto early = TlsContext::Create(Ours().Issue("early", 600, 3600));
  EXPECT_THAT(Message(early.status()), HasSubstr("not valid yet"));
  // One that expires while the task runs.
  const TransportOptions soon = With(Ours().Issue("soon", -3600, 3));
  // Certificates count whole seconds: only waiting makes one expire.
  std::this_thread::sleep_for(std::chrono::milliseconds(4100));
  EXPECT_THAT(Refused(With(Ours().Issue("ps")), soon, "certificate has expired"),
              HasSubstr("expired"));
}

TEST(Tls, AClientWithoutCertificateIsRefused) {
  Task ps(kPs, With(Ours().Issue("ps")));
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(ps.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  SSL_set_fd(ssl, fd);
  SSL_connect(ssl);
  char byte;
  EXPECT_LE(SSL_read(ssl, &byte, 1), 0);
  ASSERT_TRUE(ps.sink.Await([&] { return !ps.sink.strangers.empty(); }));
  EXPECT_THAT(Message(ps.sink.Get(ps.sink.strangers)[0]), HasSubstr("shows no certificate"));
  SSL_free(ssl);
  SSL_CTX_free(context);
  ::close(fd);
}

TEST(Tls, PlainAndTlsDoNotMix) {
  EXPECT_THAT(Refused(With(Ours().Issue("ps")), TransportOptions(), "does not speak TLS"),
              HasSubstr("this task speaks TLS"));
  EXPECT_THAT(Refused(TransportOptions(), With(Ours().Issue("worker")), "speaks TLS"),
              HasSubstr("does not speak TLS"));
}

TEST(Tls, CertificatesNameTheirTask) {
  const TransportOptions of_ps = With(Ours().Issue("ps", -3600, 3600, kNamesPs));
  const TransportOptions of_worker = With(Ours().Issue("worker", -3600, 3600, kNamesWorker));
  const TransportOptions of_client = With(Ours().Issue("client", -3600, 3600, kNamesClient));
  {
    Task ps(kPs, of_ps), worker(kWorker, of_worker), client(kClient, of_client);
    EXPECT_NE(worker.ConnectTo(ps), nullptr);
    EXPECT_NE(ps.ConnectTo(worker), nullptr);
    EXPECT_NE(client.ConnectTo(ps), nullptr);
  }
  const struct {
    const TransportOptions &ps, &worker;
    const char* name;  ///< What the second one says that it is.
    std::string says;
  } cases[] = {
      {of_worker, of_worker, kWorker,
       "the certificate of /job:ps/replica:0/task:0 names troupe:/job:worker/replica:0/task:0, not "
       "troupe:/job:ps/replica:0/task:0; troupe certificates"},
      {of_client, of_worker, kWorker,
       "the certificate of /job:ps/replica:0/task:0 names troupe:client, not"},
      {of_ps, of_ps, kWorker,
       "the certificate of /job:worker/replica:0/task:0 names troupe:/job:ps/replica:0/task:0, "
       "not"},
      {of_ps, of_client, kWorker,
       "the certificate of /job:worker/replica:0/task:0 names troupe:client, not"},
      {of_ps, of_worker, "/job:worker/replica:0/task:1", "not troupe:/job:worker/replica:0/task:1"},
      {of_ps, of_worker, kClient,
       "the certificate of client:1f names troupe:/job:worker/replica:0/task:0, not troupe:client"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Refused(c.ps, c.worker, c.says, c.name), HasSubstr(c.says));
  }
}

// A name counts as a whole, and only as a URI.
TEST(Tls, CertificatesThatNameNoTaskAreRefused) {
  const TransportOptions of_ps = With(Ours().Issue("ps", -3600, 3600, kNamesPs));
  const char* const names[] = {nullptr,
                               "IP:127.0.0.1",
                               "DNS:/job:worker/replica:0/task:0",
                               "email:worker@example.org",
                               "URI:/job:worker/replica:0/task:0",
                               "URI:troupe:",
                               "URI:troupe:/job:worker/task:0",
                               "URI:troupe:/job:worker/replica:0/task:00",
                               "URI:troupe:/job:worker/replica:0/task:",
                               "URI:https://troupe:/job:worker/replica:0/task:0"};
  for (const char* name : names) {
    SCOPED_TRACE(name == nullptr ? "none" : name);
    const TransportOptions nameless =
        With(Ours().Issue("/job:worker/replica:0/task:0", -3600, 3600, name));
    const bool uri = name != nullptr && std::string(name).rfind("URI:", 0) == 0;
    const std::string says =
        StrCat("the certificate of ", kWorker, " names ",
               uri ? std::string(name).substr(4) : "no task", ", not troupe:", kWorker);
    EXPECT_THAT(Refused(of_ps, nameless, says), HasSubstr(says));
  }
}

TEST(Tls, SecretsAreProvenBesides) {
  TransportOptions ps = With(Ours().Issue("ps")), worker = With(Ours().Issue("worker"));
  ps.secret = "0123456789abcdef";
  EXPECT_THAT(Refused(ps, worker, "wants a secret"), HasSubstr("wants a secret"));
  EXPECT_THAT(Refused(worker, ps, "has no secret"), HasSubstr("has no secret"));
  worker.secret = "0123456789abcdeg";
  EXPECT_THAT(Refused(ps, worker, "another secret"), HasSubstr("another secret"));
  // Who has the secret needs the name, too.
  ps.secret = worker.secret;
  worker.tls = With(Ours().Issue("client", -3600, 3600, kNamesClient)).tls;
  EXPECT_THAT(Refused(ps, worker, "names troupe:client"), HasSubstr("names troupe:client"));
}

TEST(Tls, OtherAddressesAreServedUnderTls) {
  Task ps(kPs, With(Ours().Issue("ps")));
  EXPECT_TRUE(ps.transport->Listen("0.0.0.0", 0).ok());
}

TEST(Tls, BadFiles) {
  const TlsFiles good = Ours().Issue("good");
  TlsFiles files = good;
  files.key = "";
  EXPECT_THAT(Message(TlsContext::Create(files).status()), HasSubstr("no file for the key"));
  files = good;
  files.certificate = "/nonexistent.crt";
  EXPECT_TRUE(absl::IsNotFound(TlsContext::Create(files).status()));
  files = good;
  files.certificate = good.key;
  EXPECT_THAT(Message(TlsContext::Create(files).status()), HasSubstr(good.key));
  files = good;
  files.key = good.certificate;
  EXPECT_TRUE(absl::IsInvalidArgument(TlsContext::Create(files).status()));
  files = good;
  files.key = Ours().Issue("another").key;
  EXPECT_THAT(Message(TlsContext::Create(files).status()), HasSubstr("does not belong to"));
  files = good;
  files.authority = good.key;
  EXPECT_THAT(Message(TlsContext::Create(files).status()), HasSubstr("authority file"));
}

}  // namespace
}  // namespace troupe
